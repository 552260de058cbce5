package core

import (
	"math"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// asker is a task that gathers the vectors of other members.
type asker interface {
	take(p *peer, v causal.Vector)
}

func (r *read) anew() task { return &read{} }

// anew restarts a linearizable read: its result may not be on a majority of the members that count
// now.
func (w *cover) anew() task {
	if w.shown != nil {
		return &read{}
	}
	return w
}

// read asks other members for their vectors, and is done when this replica covers the vectors of
// enough of them. It then shows every write that this many members had acknowledged before the read
// began.
//
// A linearizable read continues [R19]: it takes the current state, and returns it only when a
// majority covers it, so that no later read can miss any of it. If no write is in flight, the first
// answers already prove that.
type read struct{ survey }

// survey collects the vectors of other members, and the vector that this replica must therefore
// cover.
type survey struct {
	answers []probed
	target  causal.Vector // once fixed
	fixed   bool
}

// probed is the vector that a replica has reported.
type probed struct {
	member  string
	replica causal.Replica
	seen    causal.Vector
}

func (c *Core) read(ev Read) {
	if ev.Level.Kind == Local {
		c.emit(Done{ID: ev.ID})
		return
	}
	if c.cfg.MinMembers < 1 {
		c.emit(Done{ID: ev.ID, Err: ErrMinMembers})
		return
	}
	o, _ := gather(c, ev.Level, &read{})
	c.call(o, ev.ID, 0, ev.Deadline)
	c.begin(o)
}

func (r *read) ask(c *Core, o *operation, p *peer) {
	if !r.fixed {
		c.probe(p, o.id, causal.Vector{})
	}
}

func (c *Core) probe(p *peer, id uint64, want causal.Vector) {
	m := Send{Member: p.ID, To: p.replica, Manifest: wire.ReplicatorProbe,
		Payload: encode(&pb.Probe{Id: id, Want: c.vectorOut(want)})}
	m.passes = want.Len() == 0
	c.emit(m)
}

func (r *read) advance(c *Core, o *operation) standing {
	s := standing{need: o.level.need(c.size()), self: c.self(), upTo: math.MaxUint64}
	r.drop(c)
	if !r.fixed {
		if !o.asked && s.need > 1 || c.count(r) < s.need {
			return s
		}
		r.fix()
	}
	if !r.target.Leq(c.seen) {
		r.chase(c)
		return s
	}
	if o.level.Kind != Linear {
		s.done = true
		return s
	}
	shown := c.state()
	o.task = &cover{want: shown.Seen, shown: &shown}
	o.asked, o.again = true, c.now // members that have not reported that much are asked at once
	c.stirred = true
	return o.task.advance(c, o)
}

// has reports whether p has answered.
func (r *read) has(p *peer, _ uint64) bool {
	return slices.ContainsFunc(r.answers, func(a probed) bool { return a.member == p.ID })
}

// fix makes the join of the answers the target.
func (s *survey) fix() {
	s.fixed = true
	for _, a := range s.answers {
		s.target = s.target.Join(a.seen)
	}
}

// chase makes sure that this replica will cover the target.
func (s *survey) chase(c *Core) {
	for _, a := range s.answers {
		if p := c.peer(a.member); p != nil && !a.seen.Leq(c.seen) {
			c.noteLag(p, a.seen)
		}
	}
}

// reading reports whether any read waits for this replica to see more events.
func (c *Core) reading() bool {
	return slices.ContainsFunc(c.ops, func(o *operation) bool {
		_, ok := o.task.(*read)
		return ok
	})
}

// drop removes answers of replicas that are no longer in view, or were replaced.
func (r *read) drop(c *Core) {
	r.answers = slices.DeleteFunc(r.answers, func(a probed) bool {
		p := c.peer(a.member)
		return p == nil || p.replica != a.replica
	})
}

// take records the first answer of a replica that counts.
func (r *read) take(p *peer, v causal.Vector) {
	if p.speaks() && !r.fixed && !r.has(p, 0) {
		r.answers = append(r.answers, probed{p.ID, p.replica, v})
	}
}

// cover waits until enough replicas cover a vector that this one covers.
type cover struct {
	want  causal.Vector
	shown *State // the result of a linearizable read
}

func (w *cover) has(p *peer, _ uint64) bool { return p.covers(w.want) }

// covers reports whether p counts and has said, under the present memory, that it covers v. The
// vector that a replica covers only grows.
func (p *peer) covers(v causal.Vector) bool { return p.speaks() && v.Leq(p.sure) }

func (w *cover) ask(c *Core, o *operation, p *peer) {
	if !w.has(p, 0) {
		c.probe(p, o.id, w.want)
	}
}

func (w *cover) advance(c *Core, o *operation) standing {
	s := standing{need: o.level.need(c.size()), self: c.self(), upTo: math.MaxUint64,
		state: w.shown}
	s.done = c.count(w) >= s.need
	return s
}

// startCover waits until enough replicas cover what an update without changes has observed [R50].
func (c *Core) startCover(ev Update) {
	o, w := gather(c, ev.Level, &cover{})
	w.want = c.seen // including what the waiting updates observed
	c.call(o, ev.ID, 0, ev.Deadline)
	c.begin(o)
}

// heldProbe is a probe of a member that waits until this replica covers want.
type heldProbe struct {
	member   string
	replica  causal.Replica
	id       uint64
	want     causal.Vector
	deadline time.Time
}

// maxHeld bounds the waiting probes.
const maxHeld = 1024

// onProbe replies at once, or when this replica covers the wanted vector, which the sender has.
func (c *Core) onProbe(p *peer, payload []byte) error {
	var m pb.Probe
	if err := decode(payload, &m); err != nil {
		return err
	}
	want, err := c.vectorIn(m.Want)
	if err != nil {
		return err
	}
	if want.Leq(c.seen) {
		c.replyProbe(p, m.Id)
		return nil
	}
	c.heard(p, want)
	if len(c.held) < maxHeld {
		c.held = append(c.held, heldProbe{p.ID, p.replica, m.Id, want, c.now.Add(c.cfg.Patience)})
	}
	c.noteLag(p, want)
	return nil
}

func (c *Core) replyProbe(p *peer, id uint64) {
	c.send(p, wire.ReplicatorProbeReply,
		encode(&pb.ProbeReply{Id: id, Ready: c.counts(), Seen: c.vectorOut(c.seen),
			Members: c.roll.digest, Resigned: c.roll.resigned, Entering: c.roll.entering,
			Parting: c.parting()}))
}

// answerHeld replies to the probes whose wanted vectors are now covered.
func (c *Core) answerHeld() {
	c.held = slices.DeleteFunc(c.held, func(h heldProbe) bool {
		p := c.peer(h.member)
		switch {
		case p == nil || p.replica != h.replica || !c.now.Before(h.deadline):
			return true
		case h.want.Leq(c.seen):
			c.replyProbe(p, h.id)
			return true
		}
		return false
	})
}

func (c *Core) onProbeReply(p *peer, payload []byte) error {
	var m pb.ProbeReply
	if err := decode(payload, &m); err != nil {
		return err
	}
	v, err := c.vectorIn(m.Seen)
	if err != nil {
		return err
	}
	p.ready, c.stirred = m.Ready, true
	c.heard(p, v)
	c.parts(p, m.Parting)
	p.keeps(v)
	same := c.under(p, m.Members)
	p.resigned, p.entering = same && m.Resigned, same && m.Entering
	if !same || !m.Ready && !m.Resigned {
		return nil
	}
	c.vouched(p, v)
	for _, o := range c.ops {
		if r, ok := o.task.(asker); ok && o.id == m.Id {
			r.take(p, v)
		}
	}
	return nil
}
