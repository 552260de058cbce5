package core_test

import (
	"io"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// disturb does one random thing to one random node.
func (w *world) disturb() {
	n := w.nodes[w.rnd.IntN(len(w.nodes))]
	switch w.rnd.IntN(20) {
	case 0:
		w.cut[n.i] = w.now + w.between(time.Second, 30*time.Second)
	case 1:
		n.asleep = max(n.asleep, w.now+w.between(100*time.Millisecond, 25*time.Second))
	case 2:
		n.suspend(w.between(time.Second, 25*time.Second))
	case 3:
		n.jumped += w.between(-time.Hour, time.Hour)
	case 4:
		n.boot()
	case 5:
		n.later(0, func() { n.step(core.Close{}) })
		n.later(w.between(0, 20*time.Second), n.boot)
	default:
		n.later(0, func() { n.acquire(w.rnd.IntN(2) == 0) })
	}
}

// history lets the nodes fight under faults for a while, then heals.
func (w *world) history() {
	for t := time.Duration(0); t < 150*time.Second; t += 700 * time.Millisecond {
		w.after(t, w.disturb)
	}
	w.run(150 * time.Second)
}

// heal ends all faults and restarts every process that was closed.
func (w *world) heal() {
	w.faults = false
	for _, n := range w.nodes {
		n.awaken()
	}
	w.run(w.now + 20*time.Second)
	for _, n := range w.nodes {
		n.polite = true
		n.boot()
	}
}

// everybodyGetsIt checks liveness: all nodes ask at once, and each is served.
func (w *world) everybodyGetsIt() {
	for _, n := range w.nodes {
		n.won = 0
		n.acquire(true)
	}
	stale := mixedTTL*102/100 + w.opt.cfg.Margin
	each := 4 * time.Second // hold, release, poll
	w.run(w.now + 2*stale + time.Duration(len(w.nodes))*each)
	for _, n := range w.nodes {
		if n.won == 0 {
			w.breaks("node %d was never granted the lease", n.i)
		}
	}
}

// nobodyIsLeft checks that all requests are answered, machines quiet and the record blank.
func (w *world) nobodyIsLeft() {
	w.run(w.now + 30*time.Second)
	for _, n := range w.nodes {
		if len(n.pending) > 0 || !n.m.Quiet() {
			w.breaks("node %d is not quiet, waits for %v", n.i, n.pending)
		}
	}
	if w.record.Nonce != "" {
		w.breaks("zombie holder: %+v", w.record)
	}
}

func (w *world) all() {
	w.history()
	if len(w.broken) == 0 {
		w.heal()
		w.everybodyGetsIt()
	}
	if len(w.broken) == 0 {
		w.nobodyIsLeft()
	}
}

func seeds(t *testing.T) uint64 {
	if testing.Short() || raceEnabled {
		return 150
	}
	return 1000
}

// TestSimulation_NeverTwoHolders runs seeded histories of contenders with skewed clocks under loss,
// delay, pauses, suspends, wall clock jumps, crashes and closes. In each: valid intervals never
// overlap in true time, tokens grow with tenures, a loss is told once, every request is answered once,
// nobody is left behind, and everybody is served after the faults end.
func TestSimulation_NeverTwoHolders(t *testing.T) {
	grants := 0
	for seed := range seeds(t) {
		w := newWorld(t, seed, options{nodes: 2 + int(seed%4), watch: seed%3 == 0, cfg: testConfig,
			drift: 0.01, mixed: seed%5 == 0})
		w.all()
		for _, b := range w.broken {
			t.Fatalf("seed %d: %s", seed, b)
		}
		grants += w.grants
	}
	t.Logf("%d seeds, %d tenures", seeds(t), grants)
}

// TestSimulation_EqualSeedsEqualTraces guards determinism.
func TestSimulation_EqualSeedsEqualTraces(t *testing.T) {
	run := func(seed uint64) uint64 {
		return hash(func(trace io.Writer) {
			w := newWorld(t, seed, options{nodes: 3, watch: true, cfg: testConfig, drift: 0.01})
			w.trace = trace
			w.all()
		})
	}
	for seed := range uint64(20) {
		if a, b := run(seed), run(seed); a != b {
			t.Fatalf("seed %d: traces %x and %x", seed, a, b)
		}
	}
}

// TestSimulation_Bites shows that the checks notice a broken rule.
func TestSimulation_Bites(t *testing.T) {
	careless := testConfig
	careless.RateError, careless.Margin = 0, 0
	for name, opt := range map[string]options{
		"validity counted from the answer": {nodes: 4, cfg: testConfig, drift: 0.01, fromAnswer: true},
		"store that does not compare":      {nodes: 4, cfg: testConfig, drift: 0.01, blindStore: true},
		"clocks worse than promised":       {nodes: 4, cfg: careless, drift: 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(1000) {
				w := newWorld(t, seed, opt)
				w.history()
				if len(w.broken) > 0 {
					return
				}
			}
			t.Error("no history shows the violation")
		})
	}
}
