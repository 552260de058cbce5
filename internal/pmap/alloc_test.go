package pmap

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadingAllocatesNothing(t *testing.T) {
	m := numbers(10000)
	changed := m.Put(numberKey(77), -1)
	same := func(x, y int) bool { return x == y }
	sum := 0
	reads := map[string]func(){
		"Get":         func() { v, _ := m.Get("key-01234"); sum += v },
		"Get absent":  func() { v, _ := m.Get("nothing"); sum += v },
		"At":          func() { _, v := m.At(5000); sum += v },
		"CountPrefix": func() { sum += m.CountPrefix("key-01") },
		"All": func() {
			for _, v := range m.All() {
				sum += v
			}
		},
		"From": func() {
			for _, v := range m.From("key-01") {
				sum += v
			}
		},
		"Prefix": func() {
			for _, v := range m.Prefix("key-01") {
				sum += v
			}
		},
		"Diff": func() {
			Diff(m, changed, same, func(_ string, v int, _ bool, _ int, _ bool) bool {
				sum += v
				return true
			})
		},
		"Delete absent": func() { sum += m.Delete("nothing").Len() },
	}
	for name, read := range reads {
		require.Zero(t, testing.AllocsPerRun(10, read), name)
	}
}

// An update allocates a leaf, its keys, and one node for each level above.
func TestAllocationsOfAnUpdate(t *testing.T) {
	for _, c := range []struct{ n, levels int }{{10, 0}, {300, 1}, {8000, 2}} {
		var b Builder[int]
		for i := range c.n {
			b.Add([]byte(numberKey(i)), i)
		}
		m := b.Map()
		require.Equal(t, c.levels, m.root.height())
		insert := testing.AllocsPerRun(10, func() { m.Put("key-00007x", 1) })
		require.InDelta(t, 2+c.levels, insert, 0, "insert into %d", c.n)
		replace := testing.AllocsPerRun(10, func() { m.Put("key-00007", 1) })
		require.InDelta(t, 1+c.levels, replace, 0, "replace in %d", c.n)
		remove := testing.AllocsPerRun(10, func() { m.Delete("key-00007") })
		require.InDelta(t, 2+c.levels, remove, 0, "remove from %d", c.n)
	}
}

// Regression: a shrinking list of keys requested 4 GiB, because its length was computed from a
// difference that had wrapped around.
func TestMemoryOfADeletion(t *testing.T) {
	m := numbers(10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		m.Delete("key-00007")
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<10))
}

// A key cut from a large message must not keep the message.
func TestMapKeepsNoneOfTheBytesOfTheCaller(t *testing.T) {
	message := []byte(strings.Repeat("0123456789", 10))
	var b Builder[int]
	b.Add(message[:10], 1)
	built := b.Map()
	single := Map[int]{}.Put(unsafeString(message[:10]), 1)
	grown := numbers(40).Put(unsafeString(message[10:50]), 1)
	for i := range message {
		message[i] = 'x'
	}
	checkMap(t, built, map[string]int{"0123456789": 1})
	checkMap(t, single, map[string]int{"0123456789": 1})
	want := collect(numbers(40))
	want[strings.Repeat("0123456789", 4)] = 1
	checkMap(t, grown, want)
}
