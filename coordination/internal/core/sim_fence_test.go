package core_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/sim"
)

// target is the target of guarded work. It records the writes that a fence admits.
type target struct {
	guard    fence.Guard
	newest   core.Token // highest token of an admitted write
	writes   int
	refused  int
	stale    int  // admitted although stale
	unfenced bool // admits everything
}

// stop carries out "stop NODE for TIME": nothing runs, and no clock of the node shows it, as when a
// virtual machine is saved and resumed later.
func (n *node) stop(a sim.Args) {
	now, d := n.w.Elapsed(), a.Span(2)
	if n.asleep > now {
		return
	}
	n.unseen += n.stopped[1] - n.stopped[0]
	n.stopped = [2]time.Duration{now, now + d}
	n.asleep = now + d
}

// missed returns the true time that no clock of the node has shown.
func (n *node) missed() time.Duration {
	return n.unseen + max(0, min(n.w.Elapsed(), n.stopped[1])-n.stopped[0])
}

// write carries out "write NODE after TIME": the node checks the tenure, thinks, and writes under
// it. A stop in between, or a delay of the write in transit, does not prevent the write.
func (n *node) write(a sim.Args) {
	think := a.Span(2)
	n.later(0, func() {
		if !n.valid() {
			return
		}
		token := n.token
		n.later(think, func() {
			n.w.Send(n.i, n.w.store()+1, token, func() { n.w.put(n.i, token) })
		})
	})
}

// put writes to the fenced target. A write is stale if a write of a later tenure has been admitted
// before.
func (w *world) put(who int, token core.Token) {
	t := &w.target
	t.writes++
	err := error(nil)
	if !t.unfenced {
		err = t.guard.Do(context.Background(), "target", token,
			func(context.Context) error {
				return nil
			})
	}
	switch {
	case errors.Is(err, fence.ErrStale):
		t.refused++
	case err != nil:
		w.Fail("fence: %v", err)
	case token < t.newest:
		t.stale++
		w.Fail("node %d writes with token %d after %d has written", who, token, t.newest)
	default:
		t.newest = token
	}
}

// TestSimulation_FencedTargetSeesNoStaleWrite stops processes for arbitrary times between check and
// write, also in a way that none of their clocks shows. Then two processes believe that they hold
// the lease, which cannot be prevented, and the token makes the target reject the older one's
// writes.
func TestSimulation_FencedTargetSeesNoStaleWrite(t *testing.T) {
	opt := honest
	opt.fenced = true
	var writes, refused, stale, twice, grants atomic.Int64
	count := max(1, seeds.Count/5)
	sim.Run(t, sim.Seeds{First: seeds.First, Count: count, Whole: seeds.Whole,
		Progress: seeds.Progress}, func(s *sim.World) {
		w := newWorld(s, opt)
		w.safety()
		writes.Add(int64(w.target.writes))
		refused.Add(int64(w.target.refused))
		stale.Add(int64(w.target.stale))
		twice.Add(int64(w.twice))
		grants.Add(int64(w.grants))
	})
	t.Logf("%d tenures, %d moments with two who believe they hold, %d writes, %d stale and refused, %d stale and let in",
		grants.Load(), twice.Load(), writes.Load(), refused.Load(), stale.Load())
	if count >= 50 && (refused.Load() < int64(count)/10 || twice.Load() < int64(count)/10) {
		t.Error("the histories do not exercise what they should")
	}
}

// TestSimulation_FenceBites shows that stale writes happen if the target admits everything.
func TestSimulation_FenceBites(t *testing.T) {
	opt := honest
	opt.fenced, opt.unfenced = true, true
	f := sim.Find(sim.Seeds{First: 1, Count: 2000, Whole: true}, func(s *sim.World) {
		newWorld(s, opt).safety()
	})
	if f == nil {
		t.Fatal("no history shows the violation")
	}
	t.Logf("seed %d: %s", f.Seed, f.Text)
}
