package pmap

import (
	"fmt"
	"sync"
	"testing"
)

// For the race detector: goroutines concurrently read one map and derive from it.
func TestGoroutinesDeriveFromOneValue(t *testing.T) {
	m := numbers(1000)
	want := collect(m)
	var wg sync.WaitGroup
	for g := range 2 {
		wg.Go(func() {
			for range 10 {
				derive(m, g)
			}
		})
	}
	wg.Wait()
	checkMap(t, m, want)
}

func derive(m Map[int], g int) {
	c := m
	for i := range 100 {
		c = c.Put(fmt.Sprint("x", g, i), i).Delete(numberKey(i)).Put(numberKey(i+500), -i)
	}
	c = c.DeletePrefix("key-003")
	diffs(m, c)
	keysOf(m.All())
	m.CountPrefix("key-005")
}
