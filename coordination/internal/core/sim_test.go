package core_test

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/sim"
)

var seeds = sim.Flags(usualSeeds)

// makeUp generates the events: mostly nodes that want the lease, and the faults that the seed has
// enabled.
func (w *world) makeUp(r *rand.Rand) {
	var faults []string
	kinds := orderFaults
	if !w.opt.order {
		kinds = append([]string{"cut", "mute", "halt", "lag"}, orderFaults...)
	}
	for _, f := range kinds {
		if r.IntN(4) > 0 {
			faults = append(faults, f)
		}
	}
	if w.opt.fenced {
		faults = append(faults, "stop")
	}
	share := 1 + r.IntN(6)
	ms := func(lo, hi int) time.Duration {
		return time.Duration(lo+r.IntN(hi-lo)) * time.Millisecond
	}
	for t := time.Duration(0); t < 150*time.Second; t += 700 * time.Millisecond {
		n := r.IntN(len(w.nodes))
		if w.opt.fenced {
			w.Act(t, "write", n, "after", ms(0, 3000))
		}
		what := "acquire"
		if len(faults) > 0 && r.IntN(10) < share {
			what = faults[r.IntN(len(faults))]
		}
		if r.IntN(12) == 0 {
			w.Act(t, "look", n, []string{"on", "off"}[r.IntN(2)])
		}
		switch what {
		case "cut", "mute", "halt", "lag":
			w.Act(t, what, n, "for", ms(1000, 30000))
		case "pause":
			w.Act(t, what, n, "for", ms(100, 25000))
		case "suspend":
			w.Act(t, what, n, "for", ms(1000, 25000))
		case "stop":
			w.Act(t, what, n, "for", ms(1000, 120000))
		case "jump":
			w.Act(t, what, n, "by", ms(-3600000, 3600000))
		case "restart":
			w.Act(t, what, n)
		case "close":
			w.Act(t, what, n, "for", ms(0, 20000))
		case "acquire":
			patience := time.Duration(0)
			if r.IntN(10) < 3 {
				patience = ms(1, 5000)
			}
			w.Act(t, what, n, []string{"once", "wait"}[r.IntN(2)], patience)
		}
	}
}

// safety lets the nodes contend under faults.
func (w *world) safety() {
	w.makeUp(w.Rand())
	w.Until(150 * time.Second)
}

// liveness ends all faults and restarts every process. Then all nodes ask at once, each is served
// in time, and no holder is left behind.
func (w *world) liveness() {
	w.Calm()
	for _, n := range w.nodes {
		n.awaken()
	}
	w.Until(20 * time.Second)
	for _, n := range w.nodes {
		n.polite, n.won = true, 0
		n.boot()
		if n.i%2 == 1 {
			n.step(core.Look{On: true})
		}
		n.acquire(true, 0)
	}
	stale := (mixedTTL+w.opt.cfg.LockDelay)*102/100 + w.opt.cfg.Margin
	each := 4 * time.Second // hold, release, poll
	w.Eventually(2*stale+time.Duration(len(w.nodes))*each, "every node granted the lease",
		func() bool {
			return !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.won == 0 })
		})
	for _, n := range w.nodes {
		n.step(core.Look{})
	}
	w.Eventually(30*time.Second, "every request answered, every machine quiet and the record blank",
		func() bool {
			return w.free() && !slices.ContainsFunc(w.nodes, func(n *node) bool {
				return len(n.pending) > 0 || !n.m.Quiet()
			})
		})
}

// history plays safety and liveness, for leases that are correct, or that break a rule.
func history(opt options) func(*sim.World) {
	return func(s *sim.World) { play(newWorld(s, opt)) }
}

func play(w *world) {
	w.safety()
	if !w.Failed() {
		w.liveness()
	}
}

var honest = options{cfg: testConfig, drift: 10_000}

// TestSimulation_NeverTwoHolders plays seeded histories of contenders with skewed clocks under
// loss, delay, pauses, suspends, wall clock jumps, crashes and closes. In each history, valid
// intervals never overlap in true time, tokens grow with tenures, a loss is reported once, every
// request is answered once, no holder is left behind, and every node is served after the faults
// end.
func TestSimulation_NeverTwoHolders(t *testing.T) {
	var grants, overlaps atomic.Int64
	sim.Run(t, *seeds, func(s *sim.World) {
		w := newWorld(s, honest)
		play(w)
		grants.Add(int64(w.grants))
		overlaps.Add(int64(w.twice))
	})
	t.Logf("%d tenures, %d moments with two valid holders", grants.Load(), overlaps.Load())
	if seeds.Count >= 50 && grants.Load() < int64(seeds.Count) {
		t.Error("the histories do not exercise what they should")
	}
}

// TestSimulation_ForeverHasNoSecondHolder plays the same faults with leases that never expire. A
// crashed holder keeps its lease forever, so no node needs to be served in time.
func TestSimulation_ForeverHasNoSecondHolder(t *testing.T) {
	opt := honest
	opt.cfg.Forever = true
	var grants atomic.Int64
	some := seeds.AtMost(1000)
	sim.Run(t, some, func(s *sim.World) {
		w := newWorld(s, opt)
		w.safety()
		grants.Add(int64(w.grants))
	})
	if grants.Load() < int64(some.Count) {
		t.Errorf("%d tenures", grants.Load())
	}
}

// TestSimulation_HeirsAreAlone plays the same faults with sessions that take over at once the
// leases of the process before them. That process has crashed, so there are still never two valid
// holders, and its tokens are smaller.
func TestSimulation_HeirsAreAlone(t *testing.T) {
	opt := honest
	opt.cfg.Inherit = true
	var grants atomic.Int64
	some := seeds.AtMost(1000)
	sim.Run(t, some, func(s *sim.World) {
		w := newWorld(s, opt)
		play(w)
		grants.Add(int64(w.grants))
	})
	if grants.Load() < int64(some.Count) {
		t.Errorf("%d tenures", grants.Load())
	}
}

// TestSimulation_EqualSeedsEqualTraces checks that the simulation is deterministic.
func TestSimulation_EqualSeedsEqualTraces(t *testing.T) {
	sim.Run(t, sim.Seeds{First: 1, Count: min(usualSeeds/5, 1000), Twice: true}, history(honest))
}

// TestSavedHistories replays the histories that once failed, and some that show a planted bug.
func TestSavedHistories(t *testing.T) { sim.Replay(t, sim.Folder, history(honest)) }

// TestSimulation_Bites shows that the checks notice a broken rule.
func TestSimulation_Bites(t *testing.T) {
	careless := testConfig
	careless.RateError, careless.Margin = 0, 0
	for name, opt := range map[string]options{
		"validity counted from the answer": {cfg: testConfig, drift: 10_000, fromAnswer: true},
		"store that does not compare":      {cfg: testConfig, drift: 10_000, blindStore: true},
		"clocks worse than promised":       {cfg: careless, drift: 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			f := sim.Find(sim.Seeds{First: 1, Count: 20_000, Whole: true}, history(opt))
			if f == nil {
				t.Fatal("no history shows the violation")
			}
			t.Logf("seed %d: %s", f.Seed, f.Text)
		})
	}
}
