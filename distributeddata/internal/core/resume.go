package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// Resume makes the replica go on after a step that panicked [R29]. It holds what it held before that step, or after it:
// transitions of the ledger are never seen half done. What is known of other members, answers and bases under way, and
// the window are built anew. What was being handed over, by a disk or a former life, is taken once more. calls are
// the ids of all calls that wait. They are begun again; a call that was not under way yet is Done as Interrupted. The
// effects are those that Step has not returned, and those of going on. Resume may panic too: c is then as it was, and
// Resume can be called again.
func (c *Core) Resume(now time.Time, calls []uint64) []Effect {
	n := *c
	n.now, n.effects, n.touched = now, nil, nil
	for _, e := range c.effects {
		if _, ok := e.(Send); !ok { // messages may get lost
			n.emit(e)
		}
	}
	n.revoked = c.revoked.copy()
	n.restore()
	n.note(change{skipped: true}) // maybe
	n.forgetOthers()
	n.endAgain()
	n.callAgain(c.deadlines, calls)
	c.begun.diff(n.keys, func(key string, a, b Held) {
		if !a.SameValue(b.Store) {
			n.touched = append(n.touched, causal.Clone(key))
		}
	})
	n.takeAgain()
	n.settle()
	n.commitAgain()
	n.gate()
	n.taking = nil
	*c = n
	return c.effects
}

// forgetOthers keeps of the other members only which replicas they run, and asks them for their heartbeats, which
// tell the rest.
func (c *Core) forgetOthers() {
	peers := make([]*peer, len(c.peers))
	for i, p := range c.peers {
		peers[i] = &peer{Member: p.Member, replica: p.replica}
	}
	c.peers, c.lags, c.scrub = peers, nil, scrub{}
	c.window = window{count: c.cfg.WindowCount, bytes: c.cfg.WindowBytes}
	c.bases = slices.Clone(c.bases)
	c.fetch, c.fetchAfter, c.awaiting, c.awaitingBytes = nil, time.Time{}, nil, 0
	c.incoming, c.askAfter, c.outgoing, c.behind = nil, time.Time{}, map[string]*answer{}, nil
	c.held, c.ops, c.deadlines, c.calls, c.due = nil, nil, nil, 0, time.Time{}
	c.last, c.told, c.settled = causal.Vector{}, causal.Vector{}, causal.Vector{}
	c.stirred, c.unpushed = true, 1 // there may be own events to push
	c.beatAt = c.now.Add(c.cfg.BeatInterval)
	c.reconsider()
	c.roll.changed = true
	c.roll.roster.forget()
	for _, p := range c.peers {
		c.askBeat(p)
	}
}

// endAgain ends the open event, which nobody waits for any more. If that is what panics, the event is given up.
func (c *Core) endAgain() {
	defer func() {
		if p := recover(); p != nil {
			c.restore()
			c.open = nil
			c.emit(Done{Interrupted: true, Err: fmt.Errorf("it cannot be committed: %v", p)})
		}
	}()
	if c.open = slices.Clone(c.open); c.seen.Covers(c.openAs) { // it has just been installed
		c.open = nil
	}
	c.end()
}

// handsOver returns an input that hands over a state which nobody else may have; nil if ev is another.
func handsOver(ev Event) Event {
	switch ev.(type) {
	case Loaded, Inherit:
		return ev
	}
	return nil
}

// takeAgain takes once more what was being handed over. To take it twice is to take it once.
func (c *Core) takeAgain() {
	if ev := c.taking; ev != nil && !c.loading(ev) {
		c.input(ev)
	}
	c.takePending()
}

// callAgain begins the calls again that were under way, and ends the others.
func (c *Core) callAgain(under deadlines, calls []uint64) {
	left := map[uint64]bool{}
	for _, id := range calls {
		left[id] = true
	}
	for _, e := range c.effects {
		if d, ok := e.(Done); ok {
			delete(left, d.ID)
		}
	}
	for _, ev := range c.revoked.waiting() {
		delete(left, ev.ID)
	}
	for _, h := range c.disk.held { // these have ended
		if d, ok := h.effect.(Done); ok {
			delete(left, d.ID)
		}
	}
	under = slices.Clone(under)
	slices.SortFunc(under, func(a, b *caller) int { return cmp.Compare(a.id, b.id) }) // writes by their events
	for _, w := range under {
		if left[w.id] && !w.ended && c.beginAgain(w) {
			delete(left, w.id)
		}
	}
	for _, id := range calls {
		if left[id] {
			c.emit(Done{ID: id, Interrupted: true})
		}
	}
}

// beginAgain begins a call again, and reports whether it can.
func (c *Core) beginAgain(w *caller) bool {
	level := w.op.level
	switch t := w.op.task.(type) {
	case *writes:
		c.awaitWrite(w.id, w.n, level, w.deadline)
	case *read:
		c.read(Read{ID: w.id, Level: level, Deadline: w.deadline})
	case *cover:
		if t.shown != nil { // a linearizable read, in its second half
			c.read(Read{ID: w.id, Level: level, Deadline: w.deadline})
		} else {
			c.startCover(Update{ID: w.id, Level: level, Deadline: w.deadline})
		}
	case *leave:
		c.drain(Drain{ID: w.id, Leave: t.forget, Deadline: w.deadline})
	case *removal:
		if t.victim != c.cfg.Member {
			c.forget(Forget{ID: w.id, Member: t.victim, Deadline: w.deadline})
		} else {
			c.beginRemoval(w.id, &removal{victim: t.victim}, w.deadline)
		}
	case *expulsion:
		c.forget(Forget{ID: w.id, Member: t.victim, Force: true, Deadline: w.deadline})
	default:
		return false
	}
	return true
}
