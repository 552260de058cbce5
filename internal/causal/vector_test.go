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

func drawModel(t *rapid.T) model {
	return model(rapid.MapOfN(rapid.Map(rapid.Uint64Range(1, 6), func(n uint64) Replica { return Replica(n) }),
		rapid.Uint64Range(1, 4), 0, 6).Draw(t, "vector"))
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

		d := Dot{Replica(rapid.Uint64Range(1, 6).Draw(t, "r")), rapid.Uint64Range(0, 5).Draw(t, "n")}
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
