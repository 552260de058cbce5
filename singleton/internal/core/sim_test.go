package core_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/concord-go/concord/internal/sim"
)

var seeds = sim.Flags(usualSeeds)

// history plays a history of correct singletons, or of singletons that break a rule.
func history(opt options) func(*sim.World) {
	return func(s *sim.World) { newWorld(s, opt).play() }
}

// TestSimulation_AtMostOneInstance plays seeded histories of members under crashes, closes,
// removals, wrong views, partitions, lost and late messages, and a lease service that is
// unavailable for some. In each history, at most one instance is alive at any time, attempts do not
// overlap, no tenure is released while its instance lives, and no message names a tenure that never
// existed. After the faults end, the oldest member has the instance in time, or the oldest of those
// that prefer themselves; every route leads there, and only that member holds the lease. When all
// have closed, the lease is free.
func TestSimulation_AtMostOneInstance(t *testing.T) {
	var starts atomic.Int64
	sim.Run(t, *seeds, func(s *sim.World) {
		w := newWorld(s, options{})
		w.play()
		starts.Add(int64(w.starts))
	})
	t.Logf("%d instances", starts.Load())
	if seeds.Count >= 50 && starts.Load() < int64(seeds.Count) {
		t.Error("the histories do not exercise what they should")
	}
}

func TestSimulation_EqualSeedsEqualTraces(t *testing.T) {
	seeds := sim.Seeds{First: 1, Count: max(50, usualSeeds-1000), Twice: true}
	sim.Run(t, seeds, history(options{}))
}

// TestSavedHistories replays the histories that once failed, and some that show a planted bug.
func TestSavedHistories(t *testing.T) { sim.Replay(t, sim.Folder, history(options{})) }

// TestSimulation_Bites shows that the checks notice a broken rule, and which one.
func TestSimulation_Bites(t *testing.T) {
	for name, c := range map[string]struct {
		opt  options
		says string
	}{
		"lease free before the instance is gone": {options{earlyRelease: true},
			"one instance in true time"},
		"start without a look at the lease": {options{blindStart: true},
			"one instance in true time"},
		"late grant not released": {options{overlookGrant: true},
			"calls its own lease free"},
	} {
		t.Run(name, func(t *testing.T) {
			// The rarest violation shows first at seed 418.
			f := sim.Find(sim.Seeds{First: 401, Count: 20_000, Whole: true}, history(c.opt))
			if f == nil {
				t.Fatal("no history shows the violation")
			}
			t.Logf("seed %d: %s", f.Seed, f.Text)
			if !strings.Contains(f.Text, c.says) {
				t.Errorf("wanted to hear of %q", c.says)
			}
		})
	}
}
