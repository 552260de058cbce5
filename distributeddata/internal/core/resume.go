package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/distributeddata/internal/transfer"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
	"github.com/concord-go/concord/internal/causal"
)

// Resume continues after a step that panicked [R41]. The replica holds its state from before or
// after that step, since transitions of the history are atomic. Knowledge about other members,
// answers and bases in flight, and the window are rebuilt. A state that a disk or an earlier
// incarnation was handing over is processed once more. calls are the ids of all pending calls,
// which end as Interrupted. The effects are those that Step has not returned, and those of
// resuming. Resume may panic too: c is then unchanged, and Resume can be called again.
func (c *Core) Resume(now time.Time, calls []uint64) []Effect {
	n := *c
	n.now, n.effects, n.touched = now, nil, nil
	for _, e := range c.effects {
		if _, ok := e.(Send); !ok { // messages may get lost
			n.emit(e)
		}
	}
	n.note(history.Change{Skipped: true}, n.Seen(), &n.bases) // possibly
	n.forgetOthers()
	n.endAgain()
	n.endCalls(calls)
	c.begun.Diff(n.Keys(), func(key string, a, b history.Held) {
		if !a.SameValue(b.Store) {
			n.touched = append(n.touched, causal.Clone(key))
		}
	})
	if n.taking != nil { // processed twice, it has the same effect as once
		n.input(n.taking)
	}
	n.settle()
	n.disk.commitAgain(&n.step)
	n.disk.gate(&n.step, n.herald().current(), n.outbox.Pushed())
	n.taking = nil
	*c = n
	return c.effects
}

// forgetOthers keeps only which replicas the other members run, and asks them for heartbeats, which
// restore the rest.
func (c *Core) forgetOthers() {
	others := make(peers, len(c.peers))
	for i, p := range c.peers {
		others[i] = &peer{Member: p.Member, replica: p.replica, expiry: p.expiry, dated: p.dated}
	}
	c.peers, c.lags = others, nil
	c.window = window{count: c.cfg.WindowCount, bytes: c.cfg.WindowBytes}
	c.bases.Set = c.bases.Next()
	c.in = intake{transfer.NewIn[refilling](c.cfg.timing())}
	c.out = outlet{transfer.NewOut[*answer](c.cfg.timing(), c.cfg.PartBytes)}
	c.probes.held, c.waits = nil, waiting.New[Level, task](c.cfg.BeatInterval)
	c.settled = causal.Vector{}
	c.waits.Stir()
	c.outbox.Again()
	c.rhythm.at = c.now.Add(c.cfg.BeatInterval)
	c.cluster().reconsider()
	if own := c.members.Own(); own.Rank != quorum.Absent {
		c.members.changed = []quorum.Member{own}
	}
	c.members.roster.forget()
	for _, p := range c.peers {
		c.herald().askBeat(p)
	}
}

// endAgain ends the open events. If that panics again, they are dropped, unless a caller has been
// told that its update was made: then it panics, and they stay as they are for the next try.
func (c *Core) endAgain() {
	defer func() {
		if p := recover(); p != nil {
			if c.history.Promised() {
				panic(p)
			}
			c.history.DropOpen()
			c.group = commitGroup{}
			c.emit(Done{Interrupted: true, Err: fmt.Errorf("the event cannot be committed: %v", p)})
		}
	}()
	c.history.Reopen()
	c.group.callers = slices.Clone(c.group.callers)
	c.end()
}

// handsOver returns ev if it hands over a state that exists nowhere else, and nil otherwise.
func handsOver(ev Event) Event {
	switch ev.(type) {
	case Loaded, Inherit:
		return ev
	}
	return nil
}

// endCalls completes the calls that were under way, except those whose outcome is known already.
func (c *Core) endCalls(calls []uint64) {
	left := map[uint64]bool{}
	for _, id := range calls {
		left[id] = true
	}
	for _, e := range c.effects {
		if d, ok := e.(Done); ok {
			delete(left, d.ID)
		}
	}
	for _, id := range waitingCalls(&c.waits, &c.disk) { // their events have just been committed
		delete(left, id)
	}
	for _, id := range calls {
		if left[id] {
			c.emit(Done{ID: id, Interrupted: true})
		}
	}
}
