package pmap

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmpty(t *testing.T) {
	var m Map[int]
	_, ok := m.Get("a")
	require.False(t, ok)
	require.Zero(t, m.Len())
	require.Zero(t, m.CountPrefix(""))
	require.True(t, m.Delete("a").Same(m))
	require.True(t, m.DeletePrefix("").Same(m))
	require.Empty(t, keysOf(m.All()))
	require.Empty(t, keysOf(m.From("")))
	require.Empty(t, keysOf(m.Prefix("")))
	requirePanics(t, func() { m.At(0) }, "pmap: index 0 out of range with length 0")
	require.True(t, m.Put("", 1).Delete("").Same(m))
	checkMap(t, m.Put("", 1), map[string]int{"": 1})
}

func TestIterationStops(t *testing.T) {
	m := numbers(1000)
	for name, seq := range map[string]func(func(string, int) bool){
		"All": m.All(), "From": m.From("key-00100"), "Prefix": m.Prefix("key-00"),
	} {
		n := 0
		for range seq {
			if n++; n == 70 {
				break
			}
		}
		require.Equal(t, 70, n, name)
	}
}

// numbers returns a map of n keys inserted in mixed order.
func numbers(n int) Map[int] {
	var m Map[int]
	for i := range n {
		m = m.Put(numberKey(i*7919%n), i)
	}
	return m
}

func numberKey(i int) string { return fmt.Sprintf("key-%05d", i) }

func TestAscendingPutsFillTheLeaves(t *testing.T) {
	var m Map[int]
	for i := range 1200 {
		m = m.Put(numberKey(i), i)
	}
	leaves := slices.DeleteFunc(nodes(m.root), func(n *node[int]) bool { return !n.leaf() })
	require.LessOrEqual(t, len(leaves), 1200*4/(3*maxLeaf)+1)
}

func TestBuilder(t *testing.T) {
	for n := range 200 {
		var b Builder[int]
		want := map[string]int{}
		for i := range n {
			b.Add([]byte(numberKey(i)), i)
			want[numberKey(i)] = i
		}
		checkMap(t, b.Map(), want)
		require.Zero(t, b.Map().Len(), "a builder is empty after Map")
	}
}

func TestBuilderRefusesKeysThatDoNotAscend(t *testing.T) {
	for at := range 40 {
		for _, k := range []string{numberKey(at), numberKey(at)[:4], ""} {
			var b Builder[int]
			for i := range at + 1 {
				b.Add([]byte(numberKey(i)), i)
			}
			requirePanics(t, func() {
				b.Add([]byte(k), 0)
			}, fmt.Sprintf("pmap: key %q added behind %q", k, numberKey(at)))
		}
	}
}

func TestKeysBeyondTheLimitAreRefused(t *testing.T) {
	huge := make([]byte, maxKey+1)
	msg := "pmap: key of 67108865 bytes"
	requirePanics(t, func() { Map[int]{}.Put(unsafeString(huge), 1) }, msg)
	requirePanics(t, func() { new(Builder[int]).Add(huge, 1) }, msg)
}

func TestDiffStops(t *testing.T) {
	a, b := numbers(100), Map[int]{}
	for _, maps := range [][2]Map[int]{{a, b}, {b, a},
		{a, a.Put("key-00050x", 1).Put("key-00060x", 1)}} {
		calls := 0
		Diff(maps[0], maps[1], func(x, y int) bool {
			return x == y
		}, func(string, int, bool, int, bool) bool {
			calls++
			return false
		})
		require.Equal(t, 1, calls)
	}
}

func TestDiffPassesOverSharedNodes(t *testing.T) {
	a := numbers(10000)
	b := a.Put(numberKey(5000), -1)
	compared := 0
	var found []string
	Diff(a, b, func(x, y int) bool {
		compared++
		return x == y
	}, func(k string, _ int, _ bool, _ int, _ bool) bool {
		found = append(found, k)
		return true
	})
	require.Equal(t, []string{numberKey(5000)}, found)
	require.LessOrEqual(t, compared, maxLeaf)
}

// DiffPrefix costs one descent of the tree if nothing below the prefix changed.
func TestDiffPrefixPassesOverTheRest(t *testing.T) {
	a := numbers(10000)
	b := a
	for i := range 5000 {
		b = b.Put(numberKey(i), -1)
	}
	b = b.Put(numberKey(7777), -1)
	compared := 0
	var found []string
	DiffPrefix(a, b, "key-07", func(x, y int) bool {
		compared++
		return x == y
	}, func(k string, _ int, _ bool, _ int, _ bool) bool {
		found = append(found, k)
		return true
	})
	require.Equal(t, []string{numberKey(7777)}, found)
	require.LessOrEqual(t, compared, 2*maxLeaf)
	require.Empty(t, diffsBelow(a, b, "nothing"))
	require.Empty(t, diffsBelow(a, b, "key-09"))
	require.Len(t, diffsBelow(a, b, ""), 5001)
	require.Len(t, diffsBelow(Map[int]{}, b, "key-1"), 0)
	require.Len(t, diffsBelow(b, Map[int]{}, "key-00"), 1000)
}

func TestDeletePrefixShares(t *testing.T) {
	m := numbers(10000)
	for _, p := range []string{"key-0", "key-012", "key-04567", "key-09", "key-00", "", "nothing"} {
		rest := m.DeletePrefix(p)
		checkMap(t, rest, without(collect(m), p))
		require.LessOrEqual(t, newNodes(m, rest), 40, "nodes of its own after %q", p)
	}
	require.True(t, m.DeletePrefix("nothing").Same(m))
}

func collect(m Map[int]) map[string]int {
	all := maps.Collect(m.All())
	return all
}

// newNodes returns how many nodes of m are not nodes of old.
func newNodes(old, m Map[int]) int {
	return len(slices.DeleteFunc(nodes(m.root), func(n *node[int]) bool {
		return slices.Contains(nodes(old.root), n)
	}))
}

func nodes(n *node[int]) []*node[int] {
	if n == nil {
		return nil
	}
	all := []*node[int]{n}
	if n.leaf() {
		return all
	}
	for _, kid := range n.kids {
		all = append(all, nodes(kid)...)
	}
	return all
}
