package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/singleton/internal/core"
)

// TestSimulation_SomebodyHostsWhileAnybodyCan plays seeded histories in which the store, the gate,
// or failing instances keep some members from hosting, or all of them. Their messages to each other
// are lost, late and reordered, and one member may crash. In each history, while any member can
// host, one of them has the instance in time, keeps it, and is the only one that tries. If no
// member can host, one tries, even if instances fail there. When all can host, the instance is soon
// back at the oldest where none has failed, with one planned move at most.
func TestSimulation_SomebodyHostsWhileAnybodyCan(t *testing.T) {
	sim.Run(t, sim.Seeds{First: seeds.First, Count: seeds.Count, Whole: seeds.Whole},
		func(s *sim.World) {
			newWorld(s, options{prompt: true}).declining()
		})
}

// takeOver bounds the time from a cut to an instance at the next member that can host. Each member
// before it notices the cut and announces that repeatedly, because messages are lost; then the
// lease expires.
func (w *world) takeOver() time.Duration {
	return validity + handOver + time.Duration(
		len(w.nodes))*(grace+attemptFor+5*time.Second) + declineFor + ttl + maxReturn
}

func (w *world) declining() {
	w.Loss = min(w.Loss, 0.15)
	w.Until(30 * time.Second)
	may := func(n *node) bool { return w.lease.reach(w, n) && n.shut <= w.Elapsed() }
	can := func(n *node) bool { return may(n) && n.sick <= w.Elapsed() }
	for round := range w.Number("rounds", 1, 3) {
		all := w.Chance(fmt.Sprint("all-", round), 0.2)
		for i, n := range w.nodes {
			switch cut := all || w.Chance(fmt.Sprintf("cut-%d-%d", round, i), 0.5); {
			case cut && w.Chance(fmt.Sprintf("gate-%d-%d", round, i), 0.3):
				n.shutFor(time.Hour)
			case cut && w.Chance(fmt.Sprintf("sick-%d-%d", round, i), 0.4):
				n.sickFor(time.Hour)
			case cut:
				w.lease.unreachable(n, w.Elapsed()+time.Hour)
			}
		}
		if w.Chance(fmt.Sprint("crash-", round), 0.3) {
			w.nodes[w.Number(fmt.Sprint("crashed-", round), 0, len(w.nodes)-1)].crash()
		}
		if slices.ContainsFunc(w.nodes, can) { // the gate of a crashed member is open again
			w.Eventually(w.takeOver(), "an instance at a member that can host", func() bool {
				return w.hostedBy(can)
			})
			w.Eventually(maxReturn+declineFor+10*time.Second, "nobody else tries", func() bool {
				return w.hostedBy(can) && w.trying() == 1
			})
		} else {
			w.Until(validity + handOver + time.Second)
			least := 0
			if slices.ContainsFunc(w.nodes, may) {
				least = 1
			}
			w.Eventually(w.takeOver(), "no instance where it may not be, and one tries",
				func() bool {
					return (len(w.alive) == 0 || w.hostedBy(may)) && w.trying() >= least &&
						w.trying() <= 1
				})
		}
		if w.Failed() {
			return
		}
		for _, n := range w.nodes {
			w.lease.unreachable(n, 0)
			n.shut, n.sick = 0, 0
			n.gateOpens()
		}
		// One probe of the store, an attempt, a poll of an expired lease.
		w.Eventually(ttl+grace+attemptFor+5*time.Second, "one instance again", func() bool {
			return len(w.alive) == 1
		})
	}
	w.Calm()
	w.Until(maxBackOff + declineFor) // until no member believes any more that instances fail
	w.Eventually(ttl+handOver+maxBackOff+declineFor+maxReturn+grace+time.Second,
		"settled at the right member", w.settled)
	starts := w.starts
	w.Until(20 * time.Second)
	if !w.Failed() && (w.starts != starts || !w.settled()) {
		w.Fail("not settled: %d instances more, states %v", w.starts-starts, w.states())
	}
}

func (w *world) hostedBy(can func(*node) bool) bool {
	for n := range w.alive {
		return len(w.alive) == 1 && can(n)
	}
	return false
}

// trying counts the members that have the lease or want it.
func (w *world) trying() (count int) {
	for _, s := range w.states() {
		if s == core.AcquiringLease || s == core.Active || s == core.BackOff {
			count++
		}
	}
	return count
}
