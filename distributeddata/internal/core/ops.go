package core

import (
	"slices"
	"time"
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
	// ask sends p what the operation wants of it, if anything.
	ask(c *Core, o *operation, p *peer)
}

// standing is how far an operation has come.
type standing struct {
	have, need int
	missing    []string // members that do not take part
	done       bool
	state      *State // of a linearizable read: what it shows
}

func (c *Core) start(id uint64, level Level, deadline time.Time, t task) {
	o := &operation{id: id, level: level, deadline: deadline, task: t}
	c.ops = append(c.ops, o)
	c.askAll(o)
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

// settleOps ends the operations that have what they need, cannot get it, or have no time left.
func (c *Core) settleOps() {
	c.ops = slices.DeleteFunc(c.ops, func(o *operation) bool {
		s := o.task.advance(c, o)
		switch {
		case s.done:
			c.emit(Done{ID: o.id, State: s.state})
		case !c.now.Before(o.deadline) || s.need > c.size():
			c.emit(Done{ID: o.id, Short: &Short{Needed: s.need, Answered: s.have, Missing: s.missing}})
		default:
			if !c.now.Before(o.again) {
				c.askAll(o)
			}
			return false
		}
		return true
	})
}

// failOps ends all operations: the id they were made under is gone.
func (c *Core) failOps() {
	for _, o := range c.ops {
		s := o.task.advance(c, o)
		c.emit(Done{ID: o.id, Short: &Short{Needed: s.need, Answered: s.have, Missing: s.missing}})
	}
	c.ops = nil
}

// count counts this replica, if it is ready, and the present replicas of members for which has says so.
func (c *Core) count(has func(*peer) bool) (have int, missing []string) {
	if c.ready {
		have = 1
	}
	for _, p := range c.peers {
		if p.replica != 0 && has(p) {
			have++
		} else {
			missing = append(missing, p.ID)
		}
	}
	return have, missing
}

// write waits until enough replicas cover this one's events up to n.
type write struct{ n uint64 }

func (w *write) ask(*Core, *operation, *peer) {} // the push has asked, heartbeats do again

func (w *write) advance(c *Core, o *operation) standing {
	s := standing{need: o.level.need(c.size())}
	s.have, s.missing = c.count(func(p *peer) bool { return p.ready && p.acked >= w.n })
	s.done = o.level.Kind == Local || s.have >= s.need
	return s
}

// startWrite waits for this replica's newest event. An update that changed nothing waits for the newest
// own event before it.
func (c *Core) startWrite(ev Update) {
	c.start(ev.ID, ev.Level, ev.Deadline, &write{c.seen.Get(c.me)})
}

// leave waits until one other replica, if there is one, covers this one's events up to n [R21a].
type leave struct{ n uint64 }

func (l *leave) ask(*Core, *operation, *peer) {}

func (l *leave) advance(c *Core, _ *operation) (s standing) {
	if l.n > 0 {
		s.need = min(1, len(c.peers))
	}
	for _, p := range c.peers {
		if p.ready && p.acked >= l.n {
			s.have++
		} else {
			s.missing = append(s.missing, p.ID)
		}
	}
	s.done = s.have >= s.need
	return s
}

func (c *Core) drain(ev Drain) {
	c.start(ev.ID, Level{}, ev.Deadline, &leave{c.seen.Get(c.me)})
}
