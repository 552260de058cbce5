package crdt_test

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// These tests bound the costs that do not depend on the machine: allocations and bytes. Times are
// in docs/performance.md.

// bytesPerRun returns the average number of bytes that f allocates per run. It returns the least of
// five rounds, because the runtime allocates too.
func bytesPerRun(runs int, f func()) float64 {
	least := math.Inf(1)
	f()
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			f()
		}
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.TotalAlloc-before.TotalAlloc)/float64(runs))
	}
	return least
}

func skipCosts(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates on its own account; the test runs without it")
	}
}

func TestCost_Updates(t *testing.T) {
	skipCosts(t)
	for n, limit := range map[int]struct{ allocs, bytes float64 }{10: {7, 1000}, 1_000: {9, 1450},
		10_000: {10, 1650}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s, alice := filled(n)
			var d crdt.Delta
			i, at := 0, places(n)
			b := bytesPerRun(64, func() {
				next := s
				d, _ = crdt.Update(alice, &next, addOne(at[i%64]))
				i++
			})
			require.LessOrEqual(t, b, limit.bytes, "add to a set")
			require.LessOrEqual(t, len(deltaBytes(t, d)), 70)
			add := func() {
				next := s
				_, _ = crdt.Update(alice, &next, addOne(at[0]))
			}
			require.LessOrEqual(t, testing.AllocsPerRun(10, add), limit.allocs,
				"add to a set, with its delta")

			b = bytesPerRun(64, func() {
				v := s
				require.NoError(t, crdt.Apply(&v, d))
			})
			require.LessOrEqual(t, b, 3000.0, "apply an add")

			var m crdt.LWWMap[string, int64]
			for i := range n {
				m.Set(alice.Writer(), element(i), int64(i))
			}
			b = bytesPerRun(64, func() {
				next := m
				d, _ = crdt.Update(alice, &next, setKey(element(n/2)))
			})
			require.LessOrEqual(t, b, 3000.0, "set a key")
			require.LessOrEqual(t, len(deltaBytes(t, d)), 100)
		})
	}
}

// A merge that brings nothing new allocates nothing, and a merge of one change allocates only for
// that change.
func TestCost_Merges(t *testing.T) {
	skipCosts(t)
	s, alice := filled(10_000)
	apart, err := s.Decode([]byte(encode(t, s)))
	require.NoError(t, err)
	ahead := s
	ahead.Add(alice.Writer(), "new")
	for name, o := range map[string]crdt.ORSet[string]{"itself": s, "built apart": apart} {
		require.Zero(t, testing.AllocsPerRun(10, func() { s.Merge(o) }), name)
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { ahead.Merge(s) }), "an ancestor")
	require.Zero(t, testing.AllocsPerRun(10, func() { s.Merge(ahead) }), "one ahead")

	c, d, more := oneSlot(t, 1000)
	apply := func() {
		v := c
		require.NoError(t, crdt.Apply(&v, d))
	}
	require.LessOrEqual(t, testing.AllocsPerRun(10, apply), 12.0, "one slot of a counter")
	require.LessOrEqual(t, bytesPerRun(10, apply), 3000.0,
		"one slot of a counter: not its whole vector")
	require.Zero(t, testing.AllocsPerRun(10, func() { more.Merge(c) }), "an ancestor of a counter")
	require.Zero(t, testing.AllocsPerRun(10, func() { c.Merge(more) }), "a counter one slot ahead")
}

// A merge of concurrent states needs one write for each path that changes in the first state.
func TestCost_ConcurrentMerges(t *testing.T) {
	skipCosts(t)
	base, at := filledBy(100)
	left, right := base, base
	left.Add(at[0].Writer(), "a", "b")
	left.Remove(at[0].Writer(), "elem7")
	right.Add(at[1].Writer(), "a", "c", "d")
	want := left.Merge(right)
	require.Equal(t, 103, want.Len())
	require.Equal(t, encode(t, want), encode(t, right.Merge(left)))
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { left.Merge(right) }), 12.0)
}

// Encoding an element into a buffer allocates nothing, and decoding fourteen elements allocates a
// few slices.
func TestCost_Wire(t *testing.T) {
	skipCosts(t)
	const n = 10_000
	s := tenBytes(n, scattered)
	src := []byte(encode(t, s))
	buf := make([]byte, 0, len(src))
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		buf, _ = s.AppendBinary(buf[:0])
	}), 5.0, "encode")
	decode := func() {
		_, err := s.Decode(src)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, testing.AllocsPerRun(10, decode), 0.2*n, "decode")
	require.LessOrEqual(t, bytesPerRun(10, decode), 52.0*n, "decode")
}

// A read that returns no new value allocates nothing.
func TestCost_Reads(t *testing.T) {
	skipCosts(t)
	s, _ := filled(10_000)
	m, _ := voted(1_000)
	require.Zero(t, testing.AllocsPerRun(10, func() { s.Contains("element-000001") }))
	require.Zero(t, testing.AllocsPerRun(10, func() { s.Len() }))
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { m.Len() }), 4.0)
}

// This test bounds the wire size of a hundred thousand elements of ten bytes, and their memory
// overhead.
func TestCost_LargeSet(t *testing.T) {
	skipCosts(t)
	const n = 100_000
	for name, c := range map[string]struct {
		element func(int) string
		wire    int
	}{"numbered": {numbered, 1_700_000}, "scattered": {scattered, 1_800_000}} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			s := tenBytes(n, c.element)
			runtime.GC()
			runtime.GC()
			runtime.ReadMemStats(&after)
			perElement := float64(after.HeapAlloc-before.HeapAlloc) / n
			require.LessOrEqual(t, perElement, 10+40.0)
			wire := len(encode(t, s))
			require.LessOrEqual(t, wire, c.wire)
			t.Logf("%.1f bytes of memory and %.1f on the wire for an element of 10", perElement,
				float64(wire)/n)
		})
	}
}
