package core_test

import (
	"hash/fnv"
	"strings"
	"testing"
)

// TestSimulation_AtMostOneInstance runs seeded histories of members under crashes, closes, expulsions,
// wrong views, partitions, lost and late messages, and a lease service that is away for some. In each: at
// most one instance is alive at any time; no attempts overlap; nothing is released under an instance;
// after the faults end the oldest has the instance in time, every route leads there and the lease is
// held by it alone; and when all have closed, nobody holds it.
func TestSimulation_AtMostOneInstance(t *testing.T) {
	seeds, starts := uint64(2000), 0
	if testing.Short() || raced { // one goroutine: there is nothing to race
		seeds = 200
	}
	for seed := range seeds {
		w := newWorld(seed, options{nodes: 2 + int(seed%4)})
		w.all()
		for _, b := range w.broken {
			t.Fatalf("seed %d: %s", seed, b)
		}
		starts += w.starts
	}
	t.Logf("%d seeds, %d instances", seeds, starts)
}

func TestSimulation_EqualSeedsEqualTraces(t *testing.T) {
	run := func(seed uint64) uint64 {
		h := fnv.New64a()
		w := newWorld(seed, options{nodes: 4})
		w.trace = h
		w.all()
		return h.Sum64()
	}
	for seed := range uint64(20) {
		if a, b := run(seed), run(seed); a != b {
			t.Fatalf("seed %d: traces %x and %x", seed, a, b)
		}
	}
}

// TestSimulation_Bites shows that the checks notice a broken rule, and which.
func TestSimulation_Bites(t *testing.T) {
	if raced {
		t.Skip("runs without the race detector")
	}
	for name, c := range map[string]struct {
		opt  options
		says string
	}{
		"lease free before the instance is gone": {options{nodes: 3, earlyRelease: true}, "beside another one"},
		"start without a look at the lease":      {options{nodes: 3, blindStart: true}, "beside another one"},
		"late grant not released":                {options{nodes: 3, overlookGrant: true}, "instances, states"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2000) {
				w := newWorld(seed, c.opt)
				if w.all(); len(w.broken) == 0 {
					continue
				}
				if !strings.Contains(w.broken[0], c.says) {
					t.Fatalf("seed %d: %s", seed, w.broken[0])
				}
				t.Logf("seed %d: %s", seed, w.broken[0])
				return
			}
			t.Error("no history shows the violation")
		})
	}
}
