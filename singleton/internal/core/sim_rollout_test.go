package core_test

import (
	"testing"
	"time"

	"github.com/concord-go/concord/internal/sim"
)

// TestSimulation_Rollouts plays rolling updates that add the singleton and then remove it. The
// members of the other version are listed, and know nothing of it. At each step, while any member
// runs the singleton, the oldest of these has the instance in time, and every route leads there.
func TestSimulation_Rollouts(t *testing.T) {
	sim.Run(t, sim.Seeds{First: seeds.First, Count: seeds.Count, Whole: seeds.Whole},
		func(s *sim.World) { newWorld(s, options{calm: true}).rollouts() })
}

func (w *world) rollouts() {
	w.Loss = min(w.Loss, 0.15)
	for _, n := range w.nodes {
		n.foreign, n.wants, w.prefer = true, preference{}, false
	}
	for _, adds := range []bool{true, false} {
		for i, n := range w.nodes {
			w.Until(w.Span("next", time.Second, 20*time.Second))
			if last := i == len(w.nodes)-1; !adds && last {
				break
			}
			n.foreign = !adds
			n.crash()
			w.prefer, n.wants = false, preference{}
			// It is silent for as long as an announcement is valid, the lease of a crashed host
			// expires, and the first announcements may be lost.
			w.Eventually(declineFor+ttl+grace+attemptFor+handOver+5*time.Second,
				"hosted by the oldest member that runs it", w.settled)
			if w.Failed() {
				return
			}
		}
	}
}
