package core

import (
	"flag"
	"sync"
	"testing"

	"github.com/concord-go/concord/testkit/sim"
)

var (
	seeds = flag.Int("seeds", defaultSeeds, "number of simulated histories")
	first = flag.Uint64("seed", 1, "first seed")
)

// TestHistories plays seeded histories. After every step of every one of them the state of the replica
// that took it is what the specification says of its vector; reads see what was acknowledged before;
// and when the faults end all replicas become equal to the byte, with nothing acknowledged lost.
//
// To play one again: go test ./distributeddata/internal/core -run TestHistories -seeds 1 -seed N.
func TestHistories(t *testing.T) {
	var mu sync.Mutex
	var total Stats
	var acked, done int
	sim.Run(t, sim.Seeds{First: *first, Count: *seeds}, func(w *sim.World) {
		s := newPlay(w)
		s.run()
		mu.Lock()
		defer mu.Unlock()
		total, acked, done = addStats(total, s.total), acked+len(s.acked), done+s.done
	})
	t.Logf("%d acknowledged writes, %d operations ended well, %+v", acked, done, total)
	if *seeds >= 50 && (acked == 0 || total.Bulks == 0 || total.Deltas == 0 || total.Waiting == 0) {
		t.Error("the histories do not exercise what they should")
	}
	if total.Malformed > 0 {
		t.Errorf("%d messages of our own were refused", total.Malformed)
	}
}

// Nothing in a core depends on anything but its inputs.
func TestHistories_EqualSeedsEqualTraces(t *testing.T) {
	sim.Twice(t, sim.Seeds{First: *first, Count: min(*seeds, 1000) / 5}, func(w *sim.World) { newPlay(w).run() })
}
