package core_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/sim"
)

// defaultConfig has the default times of a session.
var defaultConfig = core.Config{
	TTL: 8 * time.Second, Renew: 1968 * time.Millisecond, Operation: 2400 * time.Millisecond,
	Retry: 1968 * time.Millisecond,
	Drain: 1333 * time.Millisecond, Margin: 250 * time.Millisecond, RateError: 0.01,
}

// calm is a history without faults but those that the test adds: two nodes with the default times,
// of which the first holds the lease and the second waits for it.
func calm(s *sim.World, call time.Duration) *world {
	opt := options{cfg: defaultConfig, drift: 10_000}
	w := newWorld(s, opt)
	w.Faults, w.errs, w.refused = sim.Faults{Delay: call / 2}, 0, 0
	w.opt.cfg.LockDelay = 0
	w.shared, w.fair, w.mixed, w.watch = w.Number("all-shared", 0, 1), 0, false, true
	for _, n := range w.nodes[2:] {
		n.incarnation++ // it never starts
	}
	w.nodes = w.nodes[:2]
	for _, n := range w.nodes {
		n.boot()
		n.keeps = true
	}
	w.nodes[0].acquire(true, 0)
	w.Until(3 * call)
	w.nodes[1].acquire(true, 0)
	w.Until(5 * call)
	return w
}

// TestSimulation_APauseOfTwoSecondsLosesNothing pauses the holder for up to two seconds at any
// moment, on stores whose calls take up to a quarter of the TTL.
func TestSimulation_APauseOfTwoSecondsLosesNothing(t *testing.T) {
	var pauses atomic.Int64
	sim.Run(t, seeds.AtMost(100), func(s *sim.World) {
		w := calm(s, s.Span("call", 2*time.Millisecond, defaultConfig.TTL/4))
		holder := w.nodes[0]
		for range 20 {
			w.Until(defaultConfig.TTL + w.Span("until", 0, 4*time.Second))
			holder.asleep = w.Elapsed() + w.Span("paused", 0, 2*time.Second)
			pauses.Add(1)
			if holder.lost > 0 {
				w.Fail("the lease is lost")
				return
			}
		}
	})
	t.Logf("%d pauses", pauses.Load())
}

// TestSimulation_ACrashCostsElevenSeconds kills the holder at any moment, on stores whose calls
// take up to a fifth of a second, and whose reports may be late.
func TestSimulation_ACrashCostsElevenSeconds(t *testing.T) {
	var longest, sum, count atomic.Int64
	sim.Run(t, seeds.AtMost(100), func(s *sim.World) {
		w := calm(s, s.Span("call", 2*time.Millisecond, 200*time.Millisecond))
		w.Until(2*defaultConfig.TTL + w.Span("until", 0, 4*time.Second))
		crashed := w.Elapsed()
		w.nodes[0].boot()
		w.Eventually(11*time.Second, "the waiting node holds the lease", func() bool {
			return w.nodes[1].won > 0
		})
		took := int64(w.Elapsed() - crashed)
		sum.Add(took)
		count.Add(1)
		for before := longest.Load(); took > before &&
			!longest.CompareAndSwap(before, took); before = longest.Load() {
		}
	})
	t.Logf("taken over after %v on average, %v at most", time.Duration(sum.Load()/count.Load()),
		time.Duration(longest.Load()))
}
