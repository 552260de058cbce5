package core

import (
	"math"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// operation is what some calls wait for together [R52]. There are few of them, however many calls wait:
// writes of one level are one operation, and so are reads of one level that began while others of that
// level were being asked for.
type operation struct {
	id      uint64 // of its first caller: names it in probes
	level   Level
	task    task
	asked   bool
	again   time.Time // when to ask again whoever has not answered; zero: never
	callers []*caller // in the order they came; the ended ones are passed over
	live    int       // those that have not ended
	kept    bool      // it goes on although nobody waits for it, until it is done
}

// task is what an operation waits for.
type task interface {
	// advance does what has become possible, and says how the operation stands at this moment, in the
	// view of this moment [R18].
	advance(c *Core, o *operation) standing
	// has reports whether a member takes part in a call, of event n if it is a write.
	has(p *peer, n uint64) bool
	// ask sends p what the operation wants of it, if anything.
	ask(c *Core, o *operation, p *peer)
	// anew returns the task without what it has gathered: other members count now [M1].
	anew() task
}

// standing is how far an operation has come.
type standing struct {
	need     int
	self     int    // 1 if this replica counts
	done     bool   // for the calls up to
	upTo     uint64 // this event
	hopeless bool   // it cannot come to an end in this view
	state    *State // of a linearizable read: what it shows
}

// rounds bounds how many operations of one kind and level ask at a time. Calls that come then wait
// together until one of these has ended, or for a heartbeat interval.
const rounds = 8

// gather returns the operation of a level that calls can still join, since nobody has been asked yet, or
// makes one with the task.
func gather[T task](c *Core, level Level, t T) (*operation, T) {
	for _, o := range c.ops {
		if had, ok := o.task.(T); ok && o.level == level && !o.asked {
			return o, had
		}
	}
	o := &operation{level: level, task: t, again: c.now.Add(c.cfg.BeatInterval)}
	c.ops = append(c.ops, o)
	return o, t
}

// begin settles an operation that a call has just joined.
func (c *Core) begin(o *operation) {
	c.advance(o)
	switch {
	case o.live == 0:
		c.ops = slices.DeleteFunc(c.ops, func(x *operation) bool { return x == o })
	case !o.asked && !o.again.IsZero() && c.room(o):
		c.askAll(o)
	}
	if o.live > 0 && !o.again.IsZero() && (c.due.IsZero() || o.again.Before(c.due)) {
		c.due = o.again
	}
}

// room reports whether an operation may ask now.
func (c *Core) room(o *operation) bool {
	n := 0
	for _, x := range c.ops {
		if x.asked && x.level == o.level && !x.again.IsZero() {
			n++
		}
	}
	return n < rounds
}

// askAll asks every member, now and again with every heartbeat interval, since messages get lost.
func (c *Core) askAll(o *operation) {
	o.asked, o.again = true, c.now.Add(c.cfg.BeatInterval)
	for _, p := range c.peers {
		if p.replica != 0 {
			o.task.ask(c, o, p)
		}
	}
}

// settleOps looks at the operations, if anything has come that they may wait for or it is time to.
func (c *Core) settleOps() {
	if len(c.ops) == 0 || !c.stirred && c.now.Before(c.due) {
		return
	}
	c.stirred = false
	for _, o := range c.ops {
		c.advance(o)
	}
	c.expire()
	c.ops = slices.DeleteFunc(c.ops, func(o *operation) bool { return o.live == 0 && !o.kept })
	c.due = time.Time{}
	if w := c.deadlines.next(); w != nil {
		c.due = w.deadline
	}
	for _, o := range c.ops {
		if o.again.IsZero() {
			continue
		}
		if !c.now.Before(o.again) || !o.asked && c.room(o) {
			c.askAll(o)
		}
		if o.again.Before(c.due) {
			c.due = o.again
		}
	}
}

// advance ends the calls that have what they need, or cannot get it.
func (c *Core) advance(o *operation) {
	s := o.task.advance(c, o)
	impossible := s.need > c.size() || s.hopeless
	o.kept = o.kept && !s.done && !impossible
	for o.live > 0 {
		switch w := o.callers[0]; {
		case s.done && w.n <= s.upTo:
			c.endCall(w, Done{State: s.state})
		case impossible:
			c.endCall(w, Done{Short: c.short(w, s)})
		default:
			return
		}
	}
}

// count counts this replica, if it counts in quorums, and the other members that take part.
func (c *Core) count(t task) (have int) { return c.self() + c.others(t) }

// others counts the members other than this one that take part.
func (c *Core) others(t task) (have int) {
	for _, p := range c.peers {
		if p.replica != 0 && t.has(p, 0) {
			have++
		}
	}
	return have
}

// self is 1 if this replica counts in quorums.
func (c *Core) self() int {
	if c.counts() {
		return 1
	}
	return 0
}

// counts reports whether this replica's word counts in quorums: it is refilled, and stays.
func (c *Core) counts() bool { return c.ready && !c.leaving && c.disk.sound() }

// writes waits until enough replicas cover this one's events, for each call up to its own. Calls come in
// the order of their events, so they end in that order.
type writes struct{ acked []uint64 }

// ask asks again after the members that count have changed. At first the push has asked.
func (w *writes) ask(c *Core, o *operation, p *peer) { c.probe(p, o.id, causal.Vector{}) }

func (w *writes) anew() task { return w }

func (w *writes) has(p *peer, n uint64) bool { return p.speaks() && p.counted >= n }

func (w *writes) advance(c *Core, o *operation) standing {
	s := standing{need: max(o.level.need(c.size()), 1), self: c.self()}
	w.acked = w.acked[:0]
	if s.self > 0 {
		w.acked = append(w.acked, math.MaxUint64)
	}
	for _, p := range c.peers {
		if p.replica != 0 && w.has(p, 0) {
			w.acked = append(w.acked, p.counted)
		}
	}
	if s.done = len(w.acked) >= s.need; s.done {
		slices.Sort(w.acked)
		s.upTo = w.acked[len(w.acked)-s.need]
	}
	return s
}

// startWrite waits until enough replicas cover the update's event. An update that changed nothing has
// none: it waits until they cover what it observed [R50], which is all that this replica has seen.
// Where that is what the newest own event followed, covering the one is covering the other.
func (c *Core) startWrite(ev Update) {
	c.urgent = c.urgent || ev.Level.Kind != Local && c.unpushed > 0
	switch {
	case ev.Level.Kind == Local:
		c.emit(Done{ID: ev.ID, wait: forDisk, until: ev.Deadline})
	case c.seen.Equal(c.last):
		c.awaitWrite(ev.ID, c.seen.Get(c.me), ev.Level, ev.Deadline)
	default:
		c.startCover(ev)
	}
}

// awaitWrite waits until enough replicas cover this one's event n.
func (c *Core) awaitWrite(id, n uint64, level Level, deadline time.Time) {
	o, _ := gather(c, level, &writes{})
	o.again = time.Time{}
	c.call(o, id, n, deadline)
	c.begin(o)
}
