package core

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seeds = flag.Int("seeds", defaultSeeds, "number of simulated histories")
	first = flag.Uint64("seed", 1, "first seed; with -seeds 1 its story is written to standard error on failure")
)

// TestHistories plays seeded histories. After every step of every one of them the state of the replica
// that took it is what the specification says of its vector; majority reads see what was acknowledged
// before; and when the faults end all replicas become equal to the byte, with nothing acknowledged lost.
func TestHistories(t *testing.T) {
	var next atomic.Uint64
	var mu sync.Mutex
	var total Stats
	var acked, done, failed int
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				seed := *first + next.Add(1) - 1
				if seed >= *first+uint64(*seeds) {
					return
				}
				s := newSim(seed, rules{})
				failure := s.run()
				mu.Lock()
				total, acked, done = addStats(total, s.total), acked+len(s.acked), done+s.done
				if failure != "" {
					if failed++; failed <= 3 {
						t.Errorf("%s\nreproduce: go test ./distributeddata/internal/core -run TestHistories -seeds 1 -seed %d", failure, seed)
						tell(seed)
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d histories, %d failed: %d events, %d applied elsewhere, %d pushes waited, %d answers from the log, %d snapshots, %d acknowledged writes, %d operations ended well, %+v",
		*seeds, failed, total.Events, total.Applied, total.Waiting, total.Deltas, total.Bulks, acked, done, total)
	if acked == 0 || total.Bulks == 0 || total.Deltas == 0 || total.Waiting == 0 {
		t.Error("the histories do not exercise what they should")
	}
	if total.Malformed > 0 {
		t.Errorf("%d messages of our own were refused", total.Malformed)
	}
}

// tell writes the story of one seed, if only one was asked for.
func tell(seed uint64) {
	if *seeds != 1 {
		return
	}
	s := newSim(seed, rules{})
	s.trace = []byte{}
	s.run()
	fmt.Fprintf(os.Stderr, "%s", s.trace)
}

// TestHistories_EqualSeedsEqualTraces plays seeds twice: nothing in a core depends on anything but its
// inputs.
func TestHistories_EqualSeedsEqualTraces(t *testing.T) {
	for seed := uint64(1); seed <= uint64(min(*seeds, 1000)); seed += 5 {
		a, b := newSim(seed, rules{}), newSim(seed, rules{})
		a.run()
		b.run()
		if !bytes.Equal(a.hash, b.hash) {
			t.Fatalf("seed %d has two histories", seed)
		}
	}
}
