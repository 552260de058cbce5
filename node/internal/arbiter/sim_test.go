package arbiter_test

import (
	"testing"
	"time"

	"github.com/concord-go/concord/internal/sim"
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
		at := w.Moment(trouble)
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
	w.Eventually(w.bound(), "hosted by one side, that of the majority if there is one", w.hosted)
	w.Until(time.Minute)
	w.unite(w.Number("restart", 0, 1) == 1)
	w.Until(w.detection + 6*time.Second)
	w.Eventually(w.cfg.Decided()+w.detection+6*w.cfg.Lapse(), "open everywhere", w.healed)
}

// TestSimulation_OneSideHosts plays seeded histories of members under partitions of every shape,
// crashes, orderly leaves, delayed views, lost messages, and a lease store that some or all members
// do not reach, from the first second on. In each history a side with a majority hosts whatever the
// store does; once views have settled, at most one side hosts, and no gate changes any more; under
// a lasting partition one side hosts; after it has healed, every gate is open.
func TestSimulation_OneSideHosts(t *testing.T) { sim.Run(t, *seeds, play) }

func TestSavedHistories(t *testing.T) { sim.Replay(t, sim.Folder, play) }

func TestSimulation_EqualSeedsEqualTraces(t *testing.T) {
	sim.Run(t, sim.Seeds{First: 1, Count: min(usualSeeds/3, 300), Twice: true}, play)
}

// cutOnce splits the members once, at any moment from the first on, while the store answers all.
func cutOnce(s *sim.World) {
	w := newWorld(s)
	w.Loss = 0
	r := w.Rand()
	var words []any
	most := 1 + r.IntN(2)
	for range 7 {
		words = append(words, r.IntN(most+1))
	}
	at := w.Moment(90 * time.Second)
	w.Act(at, "split", words...)
	w.Until(at + 3*time.Second) // all have been started
	w.Until(w.detection)
	within := w.cfg.Decided()
	if !w.began() {
		within += ttl
	}
	if w.majorities() > 1 {
		within += 2 * ttl
	}
	w.Eventually(within, "hosted by one side, that of the majority if there is one", w.hosted)
	w.Until(10 * time.Second)
}

// TestSimulation_CutOnce checks how soon exactly one side hosts, that of the majority if there is
// one, in whatever second of the cluster's life it is cut: within the time in which the provider
// notices and Config.Decided. A cluster that has been cut before it began takes a TTL more,
// and two more if members were new and not listed by all yet, so that two sides count a majority.
func TestSimulation_CutOnce(t *testing.T) { sim.Run(t, *seeds, cutOnce) }

// beginWithout starts a cluster of which some members, but not all, do not reach the store for ten
// minutes.
func beginWithout(s *sim.World) {
	w := newWorld(s)
	if w.cfg.Members == 1 {
		return // the oldest member needs both leases
	}
	reaches := w.Number("reaches", 0, len(w.nodes)-1)
	for i, n := range w.nodes {
		if i != reaches && w.Chance("away", 0.7) {
			n.storeAway(10 * time.Minute)
		}
	}
	w.Until(3*time.Second + w.detection)
	w.Eventually(w.bound(), "open everywhere", w.open)
	w.Until(time.Minute)
	w.Until(10 * time.Minute)
	w.Eventually(w.bound(), "open everywhere, with one lease", w.healed)
}

// TestSimulation_BeginWithoutTheStore checks that a cluster begins if one member reaches the store,
// which need not be the oldest, and that no gate shuts when the others reach it as well.
func TestSimulation_BeginWithoutTheStore(t *testing.T) { sim.Run(t, *seeds, beginWithout) }
