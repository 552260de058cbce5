package core

import (
	"math"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// group is what several calls wait for together; see package waiting.
type group = waiting.Group[Level, task]

// task is what a group of calls waits for.
type task interface {
	// advance does everything that has become possible, and returns how the group stands now,
	// in the current view [R24].
	advance(c calls, o *group) standing
	// has reports whether p takes part, for event n if the call is a write.
	has(p *peer, n uint64) bool
	// ask requests from p what the group needs, if anything.
	ask(c calls, o *group, p *peer)
	// anew returns the task without what it has gathered, since other members count now [M1].
	anew() task
}

// standing is the progress of a group.
type standing struct {
	need     int
	self     int  // 1 if this replica counts
	done     bool // calls up to event upTo are done
	upTo     uint64
	hopeless bool           // it cannot be completed in this view
	state    *history.State // of a linearizable read: its result
}

// unmet returns how a group stands that nobody has answered yet.
func (c calls) unmet(o *group) standing {
	need := o.Level().need(c.members.Size())
	return standing{need: need, self: c.self(), upTo: math.MaxUint64,
		hopeless: need > c.members.Size()}
}

// gather returns a group of a level that calls can still join because no member has been asked yet.
// If there is none, it begins one with the task.
func gather[T task](c calls, level Level, t T) (*group, T) {
	fits := func(had task) bool { _, ok := had.(T); return ok }
	o := c.waits.Join(level, fits)
	if o == nil {
		o = c.waits.Open(c.now, level, t)
	}
	return o, o.Task.(T)
}

// call adds a call to a group, and begins or advances the group.
func (c calls) call(o *group, id, n uint64, deadline time.Time) {
	c.waits.Add(o, waiting.Call{ID: id, N: n, Deadline: deadline})
	c.advance(o)
	if c.waits.Begun(c.now, o) {
		c.askMembers(o)
	}
}

func (c calls) askMembers(o *group) {
	for _, p := range c.peers {
		if p.replica != 0 {
			o.Task.ask(c, o, p)
		}
	}
}

// settleCalls completes the calls that have what they wait for, cannot get it, or are late.
func (c calls) settleCalls() {
	if !c.waits.Due(c.now) {
		return
	}
	for o := range c.waits.All() {
		c.advance(o)
	}
	for o, w, ok := c.waits.Expired(c.now); ok; o, w, ok = c.waits.Expired(c.now) {
		c.endCall(o, w, Done{Short: c.members.short(o, w, o.Task.advance(c, o), c.peers)})
	}
	for o := range c.waits.Rest(c.now) {
		c.askMembers(o)
	}
}

// advance completes the calls of a group that have what they need, or cannot get it.
func (c calls) advance(o *group) {
	s := o.Task.advance(c, o)
	o.Settle(s.done || s.hopeless)
	for s.done {
		w, ok := c.waits.Pop(o, s.upTo)
		if !ok {
			break
		}
		c.endCall(o, w, Done{State: s.state})
	}
	for s.hopeless {
		w, ok := c.waits.Pop(o, math.MaxUint64)
		if !ok {
			break
		}
		c.endCall(o, w, Done{Short: c.members.short(o, w, s, c.peers)})
	}
}

// endCall reports the outcome of a call.
func (c calls) endCall(o *group, w waiting.Call, d Done) {
	d.ID = w.ID
	if d.Short == nil {
		d.wait, d.until = waits(o.Task), w.Deadline
	}
	c.disk.hurry = c.disk.hurry || d.wait == forFlush
	c.emit(d)
}

// short says how far a group has got for a call.
func (r *members) short(o *group, w waiting.Call, s standing, ps peers) *Short {
	out := &Short{Needed: s.need, Answered: s.self, Counted: r.Size()}
	took := map[string]bool{}
	for _, p := range ps {
		switch {
		case p.replica != 0 && o.Task.has(p, w.N):
			out.Answered++
			took[p.name] = true
		case p.name == "":
			out.Missing = append(out.Missing, p.ID)
		}
	}
	own := r.Own().Name
	for _, m := range r.Members() {
		if m.Counts() && m.Name != own && !took[m.Name] {
			out.Missing = append(out.Missing, m.Name)
		}
	}
	slices.Sort(out.Missing)
	if t, ok := o.Task.(*removal); ok {
		out.Handed = t.leaves && (!t.last || out.Answered >= out.Needed)
		out.AllLeave = out.Handed && r.othersLeave(ps)
	}
	return out
}

// waits returns what the success of a call has to wait for.
func waits(t task) wait {
	switch t := t.(type) {
	case *writes, *cover, *confirm:
		return forDisk
	case *leave:
		return forFlush
	case *removal:
		if t.leaves {
			return forFlush
		}
	}
	return forNothing
}

// count returns the number of replicas that take part, including this one if it counts in quorums.
func (c calls) count(t task) (have int) { return c.self() + c.peers.others(t) }

// writes waits until enough replicas cover this replica's events, for each call up to its own
// event. Calls arrive in the order of their events, so they complete in that order.
type writes struct{ acked []uint64 }

// ask repeats the question after the counting members have changed. The first question is the push.
func (w *writes) ask(c calls, o *group, p *peer) {
	c.bases.probe(c.step, p, causal.Vector{}, &pb.Probe{Id: o.ID()})
}

func (w *writes) anew() task { return w }

func (w *writes) has(p *peer, n uint64) bool { return p.speaks() && p.counted >= n }

func (w *writes) advance(c calls, o *group) standing {
	s := c.unmet(o)
	s.need = max(s.need, 1)
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
func (c calls) startWrite(w unanswered) {
	switch {
	case w.err != nil:
		c.emit(Done{ID: w.id, Err: w.err})
	case w.level.Kind == Local:
		c.emit(Done{ID: w.id, wait: forDisk, until: w.deadline})
	case w.n > 0:
		c.awaitWrite(w.id, w.n, w.level, w.deadline)
	case c.history.EndsOwn():
		c.awaitWrite(w.id, c.history.Own(), w.level, w.deadline)
	default:
		c.startCover(Update{ID: w.id, Level: w.level, Deadline: w.deadline})
	}
}

// awaitWrite waits until enough replicas cover own event n.
func (c calls) awaitWrite(id, n uint64, level Level, deadline time.Time) {
	o := c.waits.Join(level, func(t task) bool { _, ok := t.(*writes); return ok })
	if o == nil {
		o = c.waits.OpenSilent(level, &writes{}) // the push is the question
	}
	c.call(o, id, n, deadline)
}
