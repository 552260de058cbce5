package core

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// undo describes own events, committed together, that some member may not cover yet: their effects,
// and what had been seen before them.
type undo struct {
	from uint64 // the events after this one
	n    uint64 // up to this one
	seen causal.Vector
	work []*working
}

// maxUndo bounds the own events that can be redone.
const maxUndo = 256

// keepUndo keeps the effects of the events that are about to be committed. It replaces those of
// events with the same numbers that were never committed.
func (c *Core) keepUndo(u undo) {
	for len(c.undos) > 0 && c.undos[len(c.undos)-1].n > u.from {
		c.undos = c.undos[:len(c.undos)-1]
	}
	if len(c.undos) == 2*maxUndo {
		clear(c.undos[copy(c.undos, c.undos[maxUndo:]):])
		c.undos = c.undos[:maxUndo]
	}
	c.undos = append(c.undos, u)
}

// forgetUndos drops the own events that every remembered member is known to cover. A member that is
// not in view may have other events under their numbers.
func (c *Core) forgetUndos() {
	if len(c.undos) == 0 || len(c.peers) == 0 {
		return
	}
	all := c.seen.Get(c.me)
	for _, p := range c.peers {
		all = min(all, p.acked)
	}
	for _, r := range c.roll.all {
		if r.rank != gone && r.name != c.cfg.Member && c.peerOf(r.inc.replica) == nil {
			return
		}
	}
	i := 0
	for i < len(c.undos) && c.undos[i].n <= all {
		i++
	}
	if i > 0 {
		c.undos = slices.Clone(c.undos[i:])
	}
}

// revoked is what a replica that continues under a new id redoes once it has the state of another
// member [R57].
type revoked struct {
	from    string         // the member that has other events under the same numbers
	since   time.Time      // when that member was asked for its state
	asked   int            // number of members asked after it, because it did not answer
	was     causal.Replica // the former id
	common  uint64         // the events up to this number are shared with the other members
	own     uint64         // the last own event under the former id
	prints  ownPrints      // the prints of these events
	undos   []undo         // the effects of the events after common
	held    Keys           // the keys that resulted from them
	gives   causal.Replica // or the other replica whose retracted events are given up [R66]
	keys    map[string]*effects
	calls   []Update // writes that wait for these events
	delayed []Update // updates that arrived since
}

// reborn continues under a new id. Under the old id a member, which has acknowledged own events up
// to acked, has events that this replica does not know or knows differently. its are the prints of
// the member's events. Own events after the last common one are redone under the new id, on the
// state of that member. Writes that wait for them continue to wait.
func (c *Core) reborn(member string, acked uint64, its heardPrints) {
	c.end()
	was, own := c.me, c.seen.Get(c.me)
	common := c.common(acked, its)
	var v *revoked
	if common < own {
		v = c.revocation(member, common)
	}
	ended := c.abandonCalls()
	// From here to the rename nothing may panic [R29].
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

// common returns the last own event that a member is known to share with this replica: it has
// acknowledged the event and does not have a different one by now, or one of its prints confirms
// it.
func (c *Core) common(acked uint64, its heardPrints) uint64 {
	own := c.seen.Get(c.me)
	return c.prints.common(min(acked, own), own, its)
}

// revocation records the effects of the own events after common, and removes the calls that wait
// for them.
func (c *Core) revocation(member string, common uint64) *revoked {
	v := &revoked{from: member, was: c.me, common: common, own: c.seen.Get(c.me), prints: c.prints,
		undos: c.undos, held: c.keys}
	v.recallAll()
	v.calls = c.suspend(common)
	return v
}

// recallAll collects the effects of the events after common.
func (v *revoked) recallAll() {
	v.keys = map[string]*effects{}
	for _, e := range v.undos {
		if e.n > v.common && e.n <= v.own {
			v.recall(e)
		}
	}
}

// narrow leaves out the events that the received state contains as well. Their acknowledgement may
// have been lost, so they were not known to be shared. Redoing them would add to counters twice and
// bring back what other members have removed since.
func (v *revoked) narrow(its heardPrints) {
	common := v.prints.common(v.common, v.own, its)
	if common > v.common {
		v.common = common
		v.recallAll()
	}
}

// forkBeats is the number of heartbeat intervals for which members wait until only one of two
// histories is left. A restored replica waits for a state with the other events, and members with
// either history wait for that replica. After that time whatever they wait for may be gone for
// good.
const forkBeats = 60

// shared reports whether the sender of a state has revoked events and none of the other history's:
// none that differ from them or come after the last of them.
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

// again returns what the next life of the process has to redo: the effects, and the updates without
// a waiter.
func (v *revoked) again() *revoked {
	if v == nil {
		return nil
	}
	delayed := slices.DeleteFunc(slices.Clone(v.delayed), func(ev Update) bool {
		return ev.ID != 0
	})
	again := *v
	again.since, again.asked, again.calls, again.delayed = time.Time{}, 0, nil, delayed
	return &again
}

// waiting returns the updates that wait for the state on which the events are redone.
func (v *revoked) waiting() []Update {
	if v == nil {
		return nil
	}
	return slices.Concat(v.calls, v.delayed)
}

// copy returns a copy of v that can be changed independently.
func (v *revoked) copy() *revoked {
	if v == nil {
		return nil
	}
	n := *v
	n.calls, n.delayed = slices.Clone(v.calls), slices.Clone(v.delayed)
	return &n
}

// suspend removes and returns the calls that wait for own events after n.
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

// fetchRestored requests the state that replaces this replica's. For the duration of Patience it
// asks only the member that has other events under the revoked numbers, whether that member is in
// view or not. After that it asks the others, one after another. Another member may have applied
// the revoked events; if this replica took its state, the two would outvote those that have the
// other events. A member that has been restored itself does not answer before it has a state.
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
	first := slices.IndexFunc(c.peers, func(p *peer) bool {
		return p.ID == v.from && p.replica != 0
	})
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

// redo redoes the revoked events on the state of another member, and then carries out what waited
// for that.
func (c *Core) redo() {
	v := c.revoked
	c.revoked = nil
	c.clock = max(c.clock+1, uint64(max(c.now.UnixMilli(), 0))<<16)
	t := &Txn{core: c, dot: c.openDot(), stamp: c.clock}
	_ = t.run(func(t *Txn) error { // the changes were checked before
		for _, key := range slices.Sorted(maps.Keys(v.keys)) {
			x := v.keys[key]
			t.Put(key, t.Get(key).Apply(x.again(t.Dot()), x.deps, causal.Vector{}))
		}
		return nil
	})
	c.openAs = t.Dot() // the one before was of the former id [R29]
	c.merge(t.work)
	c.end()
	for _, ev := range v.calls {
		c.startWrite(unanswered{id: ev.ID, level: ev.Level, deadline: ev.Deadline})
	}
	for _, ev := range v.delayed {
		c.update(ev)
	}
	c.end() // whatever this step applies next comes after them
	c.tellRetractions()
}

// delay queues an update until the state is restored: it would observe something that other members
// do not have.
func (c *Core) delay(ev Update) {
	if len(c.revoked.delayed) >= maxHeld {
		c.emit(Done{ID: ev.ID, Err: errRestored})
		return
	}
	c.revoked.delayed = append(c.revoked.delayed, ev)
}

// expireDelayed completes updates and calls whose deadlines have passed: updates that arrived since
// the revocation, and calls whose events are revoked. It removes all of them first, since the step
// may panic while completing them [R29].
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

// takeLate removes and returns the updates that have a waiter and whose deadline has passed.
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

var errRestored = errors.New("core: this replica was restored from a snapshot and waits for the state of another member: nothing was done")
