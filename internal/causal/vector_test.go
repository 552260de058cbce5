package causal

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is a Vector represented as a map.
type model map[Replica]uint64

// drawModel draws a vector; half of the vectors have enough replicas for several nodes.
func drawModel(t *rapid.T) model {
	id := rapid.Map(rapid.Uint64Range(1, 6), func(n uint64) Replica { return Replica(n * 20) })
	m := model(rapid.MapOfN(id, rapid.Uint64Range(1, 4), 0, 6).Draw(t, "vector"))
	spread := rapid.SampledFrom([]Replica{1, 1, 1 << 20, 0x9e3779b97f4a7c15}).Draw(t, "spread")
	for i := range rapid.SampledFrom([]int{0, 0, 26, 40, 110}).Draw(t, "more") {
		if r := Replica(i+5) * spread; r%20 != 0 {
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
	require.Equal(t, shape(made.tree), shape(v.tree), "the form follows from the entries")
	require.Equal(t, made.tree == nil, v.few != nil || v.Len() == 0)
	require.Equal(t, made.Digest(), v.Digest())
	require.Equal(t, made.Hash(), v.Hash())
	require.Equal(t, made.Events(), v.Events())
	require.True(t, v.Equal(made) && v.Leq(made) && made.Leq(v) && !v.Before(made))
}

// shape describes a tree.
func shape(n *node) any {
	switch {
	case n == nil:
		return nil
	case n.left == nil:
		return fmt.Sprint(n.dots)
	}
	return []any{n.bit, n.pivot, n.count, n.events, n.hash, shape(n.left), shape(n.right)}
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
		requireDiffering(t, a, b, va, vb)
		for i, d := range slices.Collect(va.All()) {
			require.Equal(t, d, va.At(i))
			before, n := va.Rank(d.Replica)
			require.Equal(t, Dot{d.Replica, uint64(i)}, Dot{d.Replica, uint64(before)})
			require.Equal(t, d.N, n)
		}
		requireModel(t, meet, va.Meet(vb))
		require.Equal(t, leq, va.Leq(vb))
		require.Equal(t, maps.Equal(a, b), va.Equal(vb))

		d := Dot{Replica(rapid.Uint64Range(1, 130).Draw(t, "r")), rapid.Uint64Range(0, 5).Draw(
			t, "n")}
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
		requireModel(t, a, va) // unchanged by the operations above
		requireModel(t, b, vb)
	})
}

// Derived vectors share nodes, and comparisons give the same results as without sharing.
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
			d := Dot{Replica(rapid.Uint64Range(1, 130).Draw(t, "r")), rapid.Uint64Range(1, 5).Draw(
				t, "n")}
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

func requireDiffering(t *rapid.T, a, b model, va, vb Vector) {
	want, beyond := map[Replica][2]uint64{}, model{}
	for _, m := range []model{a, b} {
		for r := range m {
			if a[r] != b[r] {
				want[r] = [2]uint64{a[r], b[r]}
			}
			if a[r] > b[r] {
				beyond[r] = a[r]
			}
		}
	}
	got, last := map[Replica][2]uint64{}, Replica(0)
	for r, n := range va.Differing(vb) {
		require.Less(t, last, r)
		got[r], last = n, r
	}
	require.Equal(t, want, got)
	require.Equal(t, MakeVector(slices.Collect(beyond.vector().All())...),
		MakeVector(slices.Collect(va.Beyond(vb))...))
}

// With many replicas, raising one entry copies one leaf and its path, and comparing derived vectors
// visits only the differences.
func TestVector_RaisingOneOfManyIsCheap(t *testing.T) {
	v := past(100_000)
	r := v.At(70_000).Replica
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { v.With(Dot{r, 6}) }), 20.0)
	next := v.With(Dot{r, 6})
	require.Zero(t, testing.AllocsPerRun(10, func() { v.Before(next) }))
	differing := 0
	for range v.Differing(next) {
		differing++
	}
	require.Equal(t, 1, differing)
	require.Equal(t, next.tree, v.Join(next).tree)
	require.Equal(t, v.tree, v.Meet(next).tree)
	require.Equal(t, next.Digest(), MakeVector(slices.Collect(next.All())...).Digest())
}

// past returns the vector of n departed replicas.
func past(n int) Vector {
	dots := make([]Dot, n)
	for i := range dots {
		dots[i] = Dot{Replica(i+1) * 0x9e3779b97f4a7c15, uint64(i%7 + 1)}
	}
	return MakeVector(dots...)
}

// An entry costs little more than its 16 bytes, digest included.
func TestVector_MemoryOfAnEntry(t *testing.T) {
	const n = 100_000
	before := heap()
	v := past(n)
	v.Digest()
	each := float64(heap()-before) / n
	t.Logf("%.1f bytes for each of %d replicas", each, n)
	require.Less(t, each, 32.0)
	runtime.KeepAlive(v)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkVector(b *testing.B) {
	for _, n := range []int{10, 100, 10_000, 100_000, 1_000_000} {
		v := past(n)
		d := v.At(n / 2)
		d.N++
		next := v.With(d)
		v.Digest()
		for name, f := range map[string]func(){
			"Get": func() {
				v.Get(d.Replica)
			}, "With": func() { v.With(d) }, "Leq": func() { v.Leq(next) },
			"Join": func() { v.Join(next) }, "Digest": func() { v.With(d).Digest() },
		} {
			b.Run(fmt.Sprintf("%s/replicas=%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
	}
}

func TestEntry_AgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[Replica]Leaf{}
		var e Entry
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			l := Leaf{Dot{Replica(rapid.Uint64Range(1, 5).Draw(t, "r")),
				rapid.Uint64Range(1, 9).Draw(t, "n")},
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
