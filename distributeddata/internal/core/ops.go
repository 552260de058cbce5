package core

import (
	"math"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// operation is what several calls wait for together [R35]. Writes of one level share one operation.
// So do reads of one level that began while earlier reads of that level were in flight. The number
// of operations is therefore small, however many calls wait.
type operation struct {
	id      uint64 // that of its first caller: names it in probes
	level   Level
	task    task
	asked   bool
	again   time.Time // when to ask again the members that have not answered; zero: never
	callers []*caller // in order of arrival; completed ones are skipped
	live    int       // number of pending callers
	kept    bool      // it continues without callers until it is done
}

// task is what an operation waits for.
type task interface {
	// advance does everything that has become possible, and returns how the operation stands now,
	// in the current view [R24].
	advance(c *Core, o *operation) standing
	// has reports whether p takes part, for event n if the call is a write.
	has(p *peer, n uint64) bool
	// ask requests from p what the operation needs, if anything.
	ask(c *Core, o *operation, p *peer)
	// anew returns the task without what it has gathered, since other members count now [M1].
	anew() task
}

// standing is the progress of an operation.
type standing struct {
	need     int
	self     int  // 1 if this replica counts
	done     bool // calls up to event upTo are done
	upTo     uint64
	hopeless bool   // it cannot be completed in this view
	state    *State // of a linearizable read: its result
}

// rounds bounds the number of operations of one kind and level that ask at a time. Later calls wait
// together until one of these is done, or for a heartbeat interval.
const rounds = 8

// gather returns an operation of a level that calls can still join because it has not asked any
// member yet. If there is none, it creates one with the task.
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

// begin starts or advances an operation that a call has just joined.
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

// askAll asks every member now, and again with every heartbeat interval, since messages get lost.
func (c *Core) askAll(o *operation) {
	o.asked, o.again = true, c.now.Add(c.cfg.BeatInterval)
	for _, p := range c.peers {
		if p.replica != 0 {
			o.task.ask(c, o, p)
		}
	}
}

// settleOps advances the operations if something that they may wait for has arrived or their time
// has come.
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

// advance completes the calls that have what they need, or cannot get it.
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

// count returns the number of replicas that take part, including this one if it counts in quorums.
func (c *Core) count(t task) (have int) { return c.self() + c.others(t) }

// others returns the number of other members that take part.
func (c *Core) others(t task) (have int) {
	for _, p := range c.peers {
		if p.replica != 0 && t.has(p, 0) {
			have++
		}
	}
	return have
}

// self returns 1 if this replica counts in quorums, and 0 otherwise.
func (c *Core) self() int {
	if c.counts() {
		return 1
	}
	return 0
}

// counts reports whether this replica counts in quorums: it is refilled, not leaving, and its disk
// works.
func (c *Core) counts() bool { return c.ready && !c.leaving && c.disk.sound() }

// writes waits until enough replicas cover this replica's events, for each call up to its own
// event. Calls arrive in the order of their events, so they complete in that order.
type writes struct{ acked []uint64 }

// ask repeats the question after the counting members have changed. The first question is the push.
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

// startWrite waits until enough replicas cover the update's event. An update that changed nothing
// has no event: it waits until they cover what it observed [R34], which is everything that this
// replica has seen. If that is exactly the newest own event and its causes, covering that event is
// enough.
func (c *Core) startWrite(w unanswered) {
	switch {
	case w.err != nil:
		c.emit(Done{ID: w.id, Err: w.err})
	case w.level.Kind == Local:
		c.emit(Done{ID: w.id, wait: forDisk, until: w.deadline})
	case w.n > 0:
		c.awaitWrite(w.id, w.n, w.level, w.deadline)
	case c.seen.Equal(c.last):
		c.awaitWrite(w.id, c.seen.Get(c.me), w.level, w.deadline)
	default:
		c.startCover(Update{ID: w.id, Level: w.level, Deadline: w.deadline})
	}
}

// awaitWrite waits until enough replicas cover own event n.
func (c *Core) awaitWrite(id, n uint64, level Level, deadline time.Time) {
	o, _ := gather(c, level, &writes{})
	o.again = time.Time{}
	c.call(o, id, n, deadline)
	c.begin(o)
}
