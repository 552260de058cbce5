package core_test

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/sim"
)

var wantedMoves = flag.Int64("moves", 0,
	"play seeds until so many moves of a shard; 0: play -seeds")

// In a restless history, shards move all the time: twice a second the coordinator is asked to move
// half of them. Three histories in four also have crashes, pauses, partitions and outages.
var restless = options{nodes: 3, shards: 8, entities: 1, acts: 160, every: 500 * ms, restless: true}

// makeUpMoves makes up a restless history.
func (w *world) makeUpMoves() {
	r := w.Rand()
	faults := 0.0
	if !w.opt.planned {
		faults = 0.2 * r.Float64()
	}
	for k := range w.opt.acts {
		at := startUp + time.Duration(k)*w.opt.every
		if r.Float64() < faults {
			w.makeUpAct(at, 1+r.IntN(w.kinds()-1))
			continue
		}
		for s := range w.opt.shards {
			if r.IntN(2) == 0 {
				w.Act(at, "move", s, r.IntN(w.opt.nodes))
			}
		}
	}
}

// playMoves plays a restless history. Whether it has faults is a pick, so that a saved case has
// them.
func playMoves(h *sim.World) *world {
	opt := restless
	opt.planned = h.Number("chaos", 0, 3) == 0
	w := newWorld(h, opt)
	play(w)
	return w
}

// In each saved case a shard moves.
func TestSavedMoves(t *testing.T) {
	sim.Replay(t, "testdata/moves", func(h *sim.World) {
		if w := playMoves(h); w.stat.moved == 0 && !h.Failed() {
			h.Fail("no shard has moved")
		}
	})
}

// Shards move as often as they can, and no entity ever lives twice. With -moves, seeds are played
// until so many leases have gone to another member, and the total is printed on standard error
// after every hundred histories.
func TestSimulation_Moves(t *testing.T) {
	s := *seeds
	s.Count = max(1, s.Count/40)
	if *wantedMoves > 0 {
		s.Count = 100
	}
	var moved, handled, grants atomic.Int64
	begun := time.Now()
	for total := 0; ; s.First += uint64(s.Count) {
		sim.Run(t, s, func(h *sim.World) {
			w := playMoves(h)
			moved.Add(int64(w.stat.moved))
			handled.Add(int64(w.stat.handled))
			grants.Add(int64(w.stat.grants))
		})
		total += s.Count
		line := fmt.Sprintf("%d moves of a shard to another member, %.0f a second; %d histories, %d tenures, "+
			"%d messages handled; failed: %t", moved.Load(), float64(moved.Load())/time.Since(
			begun).Seconds(),
			total, grants.Load(), handled.Load(), t.Failed())
		if *wantedMoves > 0 {
			fmt.Fprintln(os.Stderr, line)
		}
		if t.Failed() || moved.Load() >= *wantedMoves {
			t.Log(line)
			return
		}
	}
}
