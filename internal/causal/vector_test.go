package causal

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is a Vector as a map.
type model map[Replica]uint64

// drawModel draws a vector, half of the time with so many replicas more that it has several chunks.
func drawModel(t *rapid.T) model {
	id := rapid.Map(rapid.Uint64Range(1, 6), func(n uint64) Replica { return Replica(n * 20) })
	m := model(rapid.MapOfN(id, rapid.Uint64Range(1, 4), 0, 6).Draw(t, "vector"))
	for i := range rapid.SampledFrom([]int{0, 0, 26, 40, 110}).Draw(t, "more") {
		if r := Replica(i + 5); r%20 != 0 {
			m[r] = 2
		}
	}
	return m
}

func (m model) vector() Vector {
	var dots []Dot
	for r, n := range m {
		dots = append(dots, Dot{r, n}, Dot{r, n - 1})
	}
	return MakeVector(dots...)
}

func requireModel(t *rapid.T, want model, v Vector) {
	got := model{}
	for d := range v.All() {
		require.NotZero(t, d.N)
		got[d.Replica] = d.N
	}
	require.Equal(t, want, got)
	require.Equal(t, len(want), v.Len())
	require.True(t, slices.IsSortedFunc(slices.Collect(v.All()), Dot.Compare))
	made := want.vector()
	require.Equal(t, made.rest, v.rest, "the form follows from the entries")
	require.True(t, slices.Equal(made.first, v.first))
	require.True(t, v.Equal(made) && v.Leq(made) && made.Leq(v) && !v.Before(made))
}

func TestVector_AgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawModel(t), drawModel(t)
		va, vb := a.vector(), b.vector()
		requireModel(t, a, va)
		join, meet, leq := maps.Clone(a), model{}, true
		for r, n := range b {
			join[r] = max(join[r], n)
			if a[r] > 0 {
				meet[r] = min(n, a[r])
			}
		}
		for r, n := range a {
			leq = leq && n <= b[r]
		}
		requireModel(t, join, va.Join(vb))
		requireModel(t, meet, va.Meet(vb))
		require.Equal(t, leq, va.Leq(vb))
		require.Equal(t, maps.Equal(a, b), va.Equal(vb))

		d := Dot{Replica(rapid.Uint64Range(1, 130).Draw(t, "r")), rapid.Uint64Range(0, 5).Draw(t, "n")}
		require.Equal(t, d.N <= a[d.Replica], va.Covers(d))
		with := maps.Clone(a)
		if d.N > a[d.Replica] {
			with[d.Replica] = d.N
		}
		requireModel(t, with, va.With(d))
		set := maps.Clone(a)
		set[d.Replica] = d.N
		if d.N == 0 {
			delete(set, d.Replica)
		}
		requireModel(t, set, va.Set(d.Replica, d.N))
		requireModel(t, a, va) // unchanged by all of it
		requireModel(t, b, vb)
	})
}

// Vectors made from one another share chunks, and are compared as if they did not.
func TestVector_Descendants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := drawModel(t)
		a, b := maps.Clone(base), maps.Clone(base)
		va := base.vector()
		vb := va
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			m, v := a, &va
			if rapid.Bool().Draw(t, "second") {
				m, v = b, &vb
			}
			d := Dot{Replica(rapid.Uint64Range(1, 130).Draw(t, "r")), rapid.Uint64Range(1, 5).Draw(t, "n")}
			m[d.Replica], *v = max(m[d.Replica], d.N), v.With(d)
		}
		requireModel(t, a, va)
		requireModel(t, b, vb)
		leq := func(a, b model) bool {
			for r, n := range a {
				if n > b[r] {
					return false
				}
			}
			return true
		}
		require.Equal(t, leq(a, b), va.Leq(vb))
		require.Equal(t, leq(b, a), vb.Leq(va))
		require.Equal(t, leq(a, b) && !leq(b, a), va.Before(vb))
		require.Equal(t, maps.Equal(a, b), va.Equal(vb))
	})
}

// Raising one of many replicas copies one chunk and the list of them.
func TestVector_RaisingOneOfManyIsCheap(t *testing.T) {
	var dots []Dot
	for i := range 1000 {
		dots = append(dots, Dot{Replica(i + 1), 5})
	}
	v := MakeVector(dots...)
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { v.With(Dot{700, 6}) }), 3.0)
	next := v.With(Dot{700, 6})
	shared := 0
	for i, c := range next.rest.chunks {
		if c == v.rest.chunks[i] {
			shared++
		}
	}
	require.Equal(t, len(v.rest.chunks)-1, shared)
	require.Zero(t, testing.AllocsPerRun(10, func() { v.Before(next) }))
}

func TestEntry_AgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[Replica]Leaf{}
		var e Entry
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			l := Leaf{Dot{Replica(rapid.Uint64Range(1, 5).Draw(t, "r")), rapid.Uint64Range(1, 9).Draw(t, "n")},
				rapid.SampledFrom([]string{"", "x", "yy"}).Draw(t, "payload")}
			if len(want) == 0 {
				e = One(l)
			} else {
				e = e.With(l)
			}
			want[l.Replica] = l
			requireEntry(t, want, e)
			r := Replica(rapid.Uint64Range(1, 5).Draw(t, "drop"))
			next, ok := e.Filter(func(d Dot) bool { return d.Replica != r })
			requireEntry(t, want, e)
			delete(want, r)
			require.Equal(t, len(want) > 0, ok)
			if e = next; ok {
				requireEntry(t, want, e)
			}
		}
	})
}

func requireEntry(t *rapid.T, want map[Replica]Leaf, e Entry) {
	got := slices.Collect(e.All())
	require.Equal(t, len(want), e.Len())
	require.True(t, slices.IsSortedFunc(got, byReplica))
	require.Equal(t, e.First(), got[0])
	for _, l := range got {
		require.Equal(t, want[l.Replica], l)
		require.True(t, e.Has(l.Dot))
		require.False(t, e.Has(Dot{l.Replica, l.N + 1}))
		of, ok := e.Of(l.Replica)
		require.True(t, ok)
		require.Equal(t, l, of)
	}
	require.True(t, e.Equal(entryOf(got)))
}
