package core

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// undo is an own event that some member may not cover yet: what it did, and what had been seen before.
type undo struct {
	n    uint64
	seen causal.Vector
	work []*working
}

// maxUndo bounds the own events that can be done again.
const maxUndo = 256

// keepUndo keeps what the event that is about to be committed does, in the place of one that did not come to be.
func (c *Core) keepUndo(u undo) {
	for len(c.undos) > 0 && c.undos[len(c.undos)-1].n >= u.n {
		c.undos = c.undos[:len(c.undos)-1]
	}
	if len(c.undos) == 2*maxUndo {
		c.undos = slices.Clone(c.undos[maxUndo:])
	}
	c.undos = append(c.undos, u)
}

// forgetUndos lets go of the own events that every member is known to cover.
func (c *Core) forgetUndos() {
	all := c.seen.Get(c.me)
	for _, p := range c.peers {
		all = min(all, p.acked)
	}
	i := 0
	for i < len(c.undos) && c.undos[i].n <= all && len(c.peers) > 0 {
		i++
	}
	if i > 0 {
		c.undos = slices.Clone(c.undos[i:])
	}
}

// revoked is what a replica that goes on under a new id does again, once it has the state of another [R57].
type revoked struct {
	from    string         // the member that has other events under these numbers
	since   time.Time      // it has been asked for its state
	asked   int            // members behind it that have been asked, since it does not answer
	was     causal.Replica // the former id, under which
	common  uint64         // the events up to this one are those of the others as well
	own     uint64         // of this last one
	prints  ownPrints      // with these prints
	undos   []undo         // the events behind common,
	held    Keys           // and what they have led to
	gives   causal.Replica // or the other replica, whose retracted events are given up [R66]
	keys    map[string]*effects
	calls   []Update // writes that wait for these events
	delayed []Update // came since
}

// reborn goes on under a new id: under the old one a member, which has acknowledged own events up to acked, has events that
// this replica does not know, or knows as others. its are the prints of those that it has. Own events behind the last that
// both have in common are done again, under the new id, on the state of that member. Writes that wait for them go on waiting.
func (c *Core) reborn(member string, acked uint64, its heardPrints) {
	c.end()
	was, own := c.me, c.seen.Get(c.me)
	common := c.common(acked, its)
	var v *revoked
	if common < own {
		v = c.revocation(member, common)
	}
	ended := c.abandonCalls()
	// From here on nothing panics until the replica is another one [R29].
	c.rename(c.cfg.NewReplica())
	c.disk.rename()
	c.pushed, c.unpushed, c.copied = 0, 0, 0
	c.told, c.implied, c.last = causal.Vector{}, causal.Vector{}, causal.Vector{}
	c.prints, c.undos = ownPrints{}, nil
	c.ready = false
	c.roll.resign()
	c.incoming = nil
	for _, p := range c.peers {
		p.pushed, p.inFlight, p.acked = nil, 0, 0
		p.silence()
	}
	if v != nil {
		c.revoke(was, common)
		c.revoked = v
		clear(c.outgoing)
	}
	c.emit(Reborn{Was: was, Is: c.me})
	for _, d := range ended {
		c.emit(d)
	}
	for _, p := range c.peers {
		c.sendBeat(p)
	}
}

// common returns the last own event that a member is known to have as this replica has it: it has acknowledged it, and
// has no other by now, or one of its prints says so.
func (c *Core) common(acked uint64, its heardPrints) uint64 {
	own := c.seen.Get(c.me)
	return c.prints.common(min(acked, own), own, its)
}

// revocation returns what own events behind common did, and takes the calls out that wait for them.
func (c *Core) revocation(member string, common uint64) *revoked {
	v := &revoked{from: member, was: c.me, common: common, own: c.seen.Get(c.me), prints: c.prints, undos: c.undos, held: c.keys}
	v.recallAll()
	v.calls = c.suspend(common)
	return v
}

// recallAll finds out what the events behind common did.
func (v *revoked) recallAll() {
	v.keys = map[string]*effects{}
	for _, e := range v.undos {
		if e.n > v.common && e.n <= v.own {
			v.recall(e)
		}
	}
}

// narrow leaves out the events that the state which has come contains as well: no more than that they were covered may
// have been known, by an acknowledgement that was lost. To do them again would add to a counter twice, and bring back
// what others have removed since.
func (v *revoked) narrow(its heardPrints) {
	common := v.prints.common(v.common, v.own, its)
	if common > v.common {
		v.common = common
		v.recallAll()
	}
}

// forkBeats is for how many heartbeat intervals members wait until one history is left of two: a restored replica for a
// state with the other events, and those that have the one or the other for the replica. After that those that are waited for
// may be gone for good.
const forkBeats = 60

// shared reports whether the sender of a state has events that have been revoked, and none of the others: those that
// differ, or lie behind the last.
func (v *revoked) shared(h *head) (found bool) {
	if v == nil || h.head.Get(v.was) > v.own {
		return false
	}
	for n, x := range (heardPrints{h.head.Get(v.was), h.prints[v.was]}).all() {
		if n <= v.common || n > v.own {
			continue
		}
		if contradict(x, v.prints.at(n)) {
			return false
		}
		found = found || agree(x, v.prints.at(n))
	}
	return found
}

// again is what the next life of the process does again: the effects, and updates that nobody waits for.
func (v *revoked) again() *revoked {
	if v == nil {
		return nil
	}
	delayed := slices.DeleteFunc(slices.Clone(v.delayed), func(ev Update) bool { return ev.ID != 0 })
	again := *v
	again.since, again.asked, again.calls, again.delayed = time.Time{}, 0, nil, delayed
	return &again
}

// waiting returns the updates that wait for the state on which these events are done again.
func (v *revoked) waiting() []Update {
	if v == nil {
		return nil
	}
	return slices.Concat(v.calls, v.delayed)
}

// copy returns a revocation that changes apart from v.
func (v *revoked) copy() *revoked {
	if v == nil {
		return nil
	}
	n := *v
	n.calls, n.delayed = slices.Clone(v.calls), slices.Clone(v.delayed)
	return &n
}

// suspend takes the calls out that wait for own events behind n.
func (c *Core) suspend(n uint64) (calls []Update) {
	for _, o := range c.ops {
		if _, ok := o.task.(*writes); !ok {
			continue
		}
		for _, w := range o.callers {
			if !w.ended && w.n > n {
				w.ended = true
				c.calls--
				o.live--
				calls = append(calls, Update{ID: w.id, Level: o.level, Deadline: w.deadline})
			}
		}
	}
	return calls
}

// fetchRestored asks for the state that takes the place of this replica's: for as long as Patience the member that has
// other events under the revoked numbers, whether it is in view or not, and then one after another. Another may have
// applied the revoked events, and would outvote those that have the others if this replica took its state. One that
// has been restored itself does not answer before it has a state.
func (c *Core) fetchRestored() {
	v := c.revoked
	if v == nil {
		return
	}
	c.expireDelayed()
	if c.incoming != nil {
		return
	}
	if v.since.IsZero() {
		v.since = c.now
	}
	first := slices.IndexFunc(c.peers, func(p *peer) bool { return p.ID == v.from && p.replica != 0 })
	if c.now.Before(v.since.Add(c.cfg.Patience)) {
		if first >= 0 {
			c.ask(c.peers[first], true)
		}
		return
	}
	for n := range c.peers {
		p := c.peers[(max(first, 0)+v.asked+n)%len(c.peers)]
		if p.replica == 0 {
			continue
		}
		if c.ask(p, true); c.incoming != nil {
			v.asked += n + 1
		}
		return
	}
}

// redo does again what was revoked, on the state of another, and then what waited for that.
func (c *Core) redo() {
	v := c.revoked
	c.revoked = nil
	c.clock = max(c.clock+1, uint64(max(c.now.UnixMilli(), 0))<<16)
	t := &Txn{core: c, stamp: c.clock}
	_ = t.run(func(t *Txn) error { // it has been checked
		for _, key := range slices.Sorted(maps.Keys(v.keys)) {
			x := v.keys[key]
			t.Put(key, t.Get(key).Apply(x.again(t.Dot()), x.deps, causal.Vector{}))
		}
		return nil
	})
	c.openAs = t.Dot() // the one before was of the former id: the state that has come may cover it [R29]
	for _, w := range t.work {
		c.merge(w)
	}
	c.end()
	for _, ev := range v.calls {
		c.startWrite(ev)
	}
	for _, ev := range v.delayed {
		c.update(ev)
	}
	c.end() // what this step goes on to apply comes behind them
	c.tellRetractions()
}

// delay keeps an update until the state is restored: what it would observe is not what others have.
func (c *Core) delay(ev Update) {
	if len(c.revoked.delayed) >= maxHeld {
		c.emit(Done{ID: ev.ID, Err: errRestored})
		return
	}
	c.revoked.delayed = append(c.revoked.delayed, ev)
}

// expireDelayed ends what has waited for too long: updates that came since, and calls whose events are revoked. It takes them
// all out first, since the step may panic while it ends them [R29].
func (c *Core) expireDelayed() {
	v := c.revoked
	updates, calls := takeLate(&v.delayed, c.now), takeLate(&v.calls, c.now)
	for _, ev := range updates {
		c.emit(Done{ID: ev.ID, Err: errRestored})
	}
	for _, ev := range calls {
		c.emit(Done{ID: ev.ID, Short: &Short{Needed: ev.Level.need(c.size())}})
	}
}

// takeLate takes those updates out that somebody waits for, and whose time is over.
func takeLate(updates *[]Update, now time.Time) (late []Update) {
	*updates = slices.DeleteFunc(*updates, func(ev Update) bool {
		if ev.ID == 0 || now.Before(ev.Deadline) {
			return false
		}
		late = append(late, ev)
		return true
	})
	return late
}

var errRestored = errors.New("core: this replica was restored from a snapshot, and waits for the state of another member: nothing was done")
