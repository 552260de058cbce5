package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// operation is one that waits for other replicas.
type operation struct {
	id       uint64
	level    Level
	deadline time.Time
	again    time.Time // when to ask again whoever has not answered
	task     task
}

// task is what an operation waits for.
type task interface {
	// advance does what has become possible, and says how the operation stands at this moment, in the
	// view of this moment [R18].
	advance(c *Core, o *operation) standing
	// has reports whether a member takes part.
	has(p *peer) bool
	// ask sends p what the operation wants of it, if anything.
	ask(c *Core, o *operation, p *peer)
}

// standing is how far an operation has come.
type standing struct {
	have, need int
	done       bool
	hopeless   bool   // it cannot come to an end in this view
	state      *State // of a linearizable read: what it shows
}

func (c *Core) start(id uint64, level Level, deadline time.Time, t task) {
	o := &operation{id: id, level: level, deadline: deadline, task: t}
	if c.ended(o) {
		return
	}
	c.ops = append(c.ops, o)
	c.askAll(o)
	if len(c.ops) == 1 || o.next().Before(c.due) {
		c.due = o.next()
	}
}

// next is when the operation has to be looked at, whatever comes.
func (o *operation) next() time.Time {
	if o.again.Before(o.deadline) {
		return o.again
	}
	return o.deadline
}

// askAll asks every member, now and again with every heartbeat interval, since messages get lost.
func (c *Core) askAll(o *operation) {
	o.again = c.now.Add(c.cfg.BeatInterval)
	for _, p := range c.peers {
		if p.replica != 0 {
			o.task.ask(c, o, p)
		}
	}
}

// settleOps looks at the operations that wait, if anything has come that they may wait for or it is
// time to.
func (c *Core) settleOps() {
	if len(c.ops) == 0 || !c.stirred && c.now.Before(c.due) {
		return
	}
	c.stirred = false
	c.due = time.Time{}
	c.ops = slices.DeleteFunc(c.ops, func(o *operation) bool {
		if c.ended(o) {
			return true
		}
		if !c.now.Before(o.again) {
			c.askAll(o)
		}
		if at := o.next(); c.due.IsZero() || at.Before(c.due) {
			c.due = at
		}
		return false
	})
}

// ended ends an operation that has what it needs, cannot get it, or has no time left.
func (c *Core) ended(o *operation) bool {
	s := o.task.advance(c, o)
	switch {
	case s.done:
		c.emit(Done{ID: o.id, State: s.state})
	case !c.now.Before(o.deadline) || s.need > c.size() || s.hopeless:
		c.emit(Done{ID: o.id, Short: c.short(o, s)})
	default:
		return false
	}
	return true
}

func (c *Core) short(o *operation, s standing) *Short {
	out := &Short{Needed: s.need, Answered: s.have}
	for _, p := range c.peers {
		if p.replica == 0 || !o.task.has(p) {
			out.Missing = append(out.Missing, p.ID)
		}
	}
	return out
}

// failOps ends all operations: the id they were made under is gone.
func (c *Core) failOps() {
	for _, o := range c.ops {
		c.emit(Done{ID: o.id, Short: c.short(o, o.task.advance(c, o))})
	}
	c.ops = nil
}

// count counts this replica, if it is ready, and the present replicas of members that take part.
func (c *Core) count(t task) (have int) {
	if c.ready {
		have = 1
	}
	for _, p := range c.peers {
		if p.replica != 0 && t.has(p) {
			have++
		}
	}
	return have
}

// write waits until enough replicas cover this one's events up to n.
type write struct{ n uint64 }

func (w *write) ask(*Core, *operation, *peer) {} // the push has asked, heartbeats do again

func (w *write) has(p *peer) bool { return p.ready && p.acked >= w.n }

func (w *write) advance(c *Core, o *operation) standing {
	s := standing{need: o.level.need(c.size()), have: c.count(w)}
	s.done = s.have >= s.need
	return s
}

// startWrite waits until enough replicas cover the update's event. An update that changed nothing has
// none: it waits until they cover what it observed [R50], which is all that this replica has seen.
// Where that is what the newest own event followed, covering the one is covering the other.
func (c *Core) startWrite(ev Update) {
	switch {
	case ev.Level.Kind == Local:
		c.emit(Done{ID: ev.ID})
	case c.seen.Equal(c.last):
		c.start(ev.ID, ev.Level, ev.Deadline, &write{c.seen.Get(c.me)})
	default:
		c.start(ev.ID, ev.Level, ev.Deadline, &cover{want: c.seen})
	}
}

// leave waits until one other replica, if there is one, covers this one's events up to n, and those of the
// former lives of its process [R21a].
type leave struct {
	n    uint64
	past causal.Vector
}

// ask lets p fetch what it lacks without waiting for a heartbeat.
func (l *leave) ask(c *Core, o *operation, p *peer) {
	if !l.has(p) {
		c.probe(p, o.id, l.past.Set(c.me, l.n))
	}
}

func (l *leave) has(p *peer) bool { return p.ready && p.acked >= l.n && l.past.Leq(p.seen) }

func (l *leave) advance(c *Core, _ *operation) (s standing) {
	if l.n > 0 || l.past.Len() > 0 {
		s.need = min(1, len(c.peers))
	}
	if len(c.peers) == 0 && c.cfg.MinMembers > 1 && c.Uncopied() > 0 {
		s.need, s.hopeless = 1, true
		return s
	}
	for _, p := range c.peers {
		if l.has(p) {
			s.have++
		}
	}
	s.done = s.have >= s.need
	return s
}

func (c *Core) drain(ev Drain) {
	c.start(ev.ID, Level{}, ev.Deadline, &leave{c.seen.Get(c.me), c.past.events})
}
