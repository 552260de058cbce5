package pmap

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Most elements are deleted, in several orders: the remaining nodes must not stay nearly empty.
func TestDeletingMostElements(t *testing.T) {
	const n = 6000
	r := rand.New(rand.NewPCG(1, 1))
	orders := map[string][]int{"random": r.Perm(n), "ascending": {}, "descending": {},
		"every other": {}}
	for i := range n {
		orders["ascending"] = append(orders["ascending"], i)
		orders["descending"] = append(orders["descending"], n-1-i)
		orders["every other"] = append(orders["every other"], i*2%n+i*2/n)
	}
	for name, order := range orders {
		t.Run(name, func(t *testing.T) {
			m := numbers(n)
			want := collect(m)
			for i, x := range order {
				m = m.Delete(numberKey(x))
				delete(want, numberKey(x))
				if i%500 == 0 || len(want) < 40 {
					checkMap(t, m, want)
				}
			}
			require.True(t, m.Same(Map[int]{}))
		})
	}
}

// Deleting every sixteenth element thins some leaves next to full ones. These leaves must take over
// elements, since merging alone would leave them small.
func TestThinNeighboursAreFilledUp(t *testing.T) {
	m := numbers(4000)
	want := collect(m)
	r := rand.New(rand.NewPCG(2, 2))
	for range 3000 {
		at := r.IntN(m.Len()) / 16 * 16
		k, _ := m.At(at)
		k = strings.Clone(k)
		m = m.Delete(k)
		delete(want, k)
	}
	checkMap(t, m, want)
}

// A long key between short ones that fill a leaf fits with neither side.
func TestLongKeyGetsALeafOfItsOwn(t *testing.T) {
	var m Map[int]
	want := map[string]int{}
	put := func(k string) {
		m = m.Put(k, len(want))
		want[k] = len(want)
		checkLong(t, m, want)
	}
	for _, k := range []string{"a", "b", "c", "x", "y"} {
		put(k + strings.Repeat("-", 200))
	}
	put("m" + strings.Repeat("-", 5000))
	require.Len(t, m.root.kids, 3)
	m = m.Delete("m" + strings.Repeat("-", 5000))
	delete(want, "m"+strings.Repeat("-", 5000))
	checkLong(t, m, want)
	require.Len(t, m.root.kids, 2, "the empty leaf is gone")
}

// Three long keys next to a full leaf of short ones stay separate when one of them is deleted.
func TestSmallLeafOfLongKeysStays(t *testing.T) {
	want := map[string]int{}
	for i := range 4 {
		want[fmt.Sprint("a", i, strings.Repeat("-", 250))] = i
	}
	for i := range 40 {
		want[fmt.Sprint("b", i+10, strings.Repeat("-", 55))] = i
	}
	m := build(want)
	k, _ := m.At(0)
	for _, end := range []string{"x", "y"} { // makes the next leaf full
		x := "b10" + strings.Repeat("-", 55) + end
		m = m.Put(x, 1)
		want[x] = 1
	}
	m = m.Delete(k)
	delete(want, k)
	checkLong(t, m, want)
	require.Equal(t, 3, m.root.kids[0].total())
}

func TestJoinOfTreesOfAnyHeights(t *testing.T) {
	sizes := []int{0, 1, 3, 14, 17, 400, 500, 9000}
	all := numbers(9000)
	keys := keysOf(all.All())
	for _, n := range sizes {
		for _, o := range sizes {
			l, r := build(some(keys[:n])), build(some(keys[len(keys)-min(o, len(keys)-n):]))
			want := collect(l)
			maps.Insert(want, r.All())
			checkMap(t, Map[int]{join(l.root, r.root)}, want)
		}
	}
}

func some(keys []string) map[string]int {
	m := map[string]int{}
	for i, k := range keys {
		m[k] = i
	}
	return m
}
