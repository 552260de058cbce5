package arbiter_test

import (
	"testing"
	"time"

	"github.com/concord-go/concord/testkit/sim"
)

var seeds = sim.Flags(usualSeeds)

// play runs a history: faults for two minutes, then a partition that stays, then a whole cluster.
func play(s *sim.World) {
	w := newWorld(s)
	r := w.Rand()
	sides := func() (words []any) {
		most := 1 + r.IntN(3)
		for range 7 {
			words = append(words, r.IntN(most+1))
		}
		return words
	}
	const trouble = 2 * time.Minute
	for range r.IntN(12) {
		at := 10*time.Second + w.Moment(trouble-10*time.Second)
		span := time.Second + w.Moment(40*time.Second)
		switch i := r.IntN(7); r.IntN(6) {
		case 0, 1:
			w.Act(at, "split", sides()...)
		case 2:
			w.Act(at, "unite", []any{"merge", "restart"}[r.IntN(2)])
		case 3:
			w.Act(at, "crash", i, span)
		case 4:
			w.Act(at, "leave", i, span)
		case 5:
			args := []any{span}
			for range 7 {
				args = append(args, r.IntN(2))
			}
			w.Act(at, "away", args...)
		}
	}
	w.Act(trouble, "split", sides()...)
	w.Until(trouble)
	w.Loss = 0
	w.Until(50 * time.Second) // members and stores that were down are back
	w.Eventually(2*ttl+w.cfg.Hold+w.cfg.Delay+w.cfg.Retry+w.detection, "hosted by a side", w.hosted)
	w.Until(time.Minute)
	w.unite(w.Number("restart", 0, 1) == 1)
	w.Until(w.detection + 6*time.Second)
	w.Eventually(w.cfg.Healed()+w.detection, "open everywhere, without the lease", w.healed)
}

// hosted reports whether all members of one side have open gates, and no others do.
func (w *world) hosted() bool {
	open, all := map[int]int{}, map[int]int{}
	for _, l := range w.living() {
		all[l.side]++
		if l.gate.Open {
			open[l.side]++
		}
	}
	for side := range open {
		return len(open) == 1 && open[side] == all[side]
	}
	return false
}

func (w *world) healed() bool {
	for _, l := range w.living() {
		if !l.gate.Open || l.here || l.held != 0 {
			return false
		}
	}
	return true
}

// TestSimulation_OneSideHosts plays seeded histories of members under partitions of every shape,
// crashes, orderly leaves, delayed views, lost messages, and a lease store that some or all members
// do not reach. In each history, members never act on two holders of the lease; once views have
// settled, at most one side has an open gate; under a lasting partition one side hosts; after it
// has healed, every gate is open and the lease is free.
func TestSimulation_OneSideHosts(t *testing.T) { sim.Run(t, *seeds, play) }

func TestSimulation_EqualSeedsEqualTraces(t *testing.T) {
	sim.Run(t, sim.Seeds{First: 1, Count: min(usualSeeds, 300), Twice: true}, play)
}
