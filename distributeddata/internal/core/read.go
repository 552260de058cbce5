package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// asker is a task that gathers the vectors of other members.
type asker interface {
	take(p *peer, v causal.Vector)
}

func (r *read) anew() task { return &read{} }

func (w *cover) anew() task { return w }

// read asks other members for their vectors, and is done when this replica covers the vectors of
// enough of them. It then shows every write that this many members had acknowledged before the read
// began.
//
// A linearizable read proposes a state [R33], and returns it when a majority has accepted it. With
// its question it proposes the state of that moment: members that have seen exactly that accept it,
// so the answers end the read if no write is in flight. Otherwise it goes on with confirm.
type read struct {
	survey
	proposed *history.State   // with the question
	accepted []causal.Replica // that have accepted it
}

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

func (c calls) read(ev Read) {
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
}

func (r *read) ask(c calls, o *group, p *peer) {
	switch {
	case r.fixed:
	case o.Level().Kind != Linear:
		c.bases.probe(c.step, p, causal.Vector{}, &pb.Probe{Id: o.ID()})
	default:
		if r.proposed == nil {
			r.proposed = new(c.history.State())
			c.promise.accept(c.Seen())
		}
		c.bases.probe(c.step, p, causal.Vector{}, &pb.Probe{Id: o.ID(), Proposes: true,
			First: true, Digest: digest(r.proposed.Seen)})
	}
}

func (r *read) advance(c calls, o *group) standing {
	s := c.unmet(o)
	r.drop(c)
	if p := r.proposed; p != nil && !r.fixed {
		w := propose(*p, r.accepted)
		if s = w.advance(c, o); s.done {
			o.Task = w
			return s
		}
		s = c.unmet(o)
	}
	if !r.covers(c, (o.Asked() || s.need <= 1) && c.count(r) >= s.need) {
		return s
	}
	if o.Level().Kind != Linear {
		s.done = true
		return s
	}
	c.promise.accept(c.Seen())
	var accepted []causal.Replica
	if p := r.proposed; p != nil && p.Seen.Equal(c.Seen()) {
		accepted = r.accepted
	}
	o.Task = propose(c.history.State(), accepted)
	o.AskSoon(c.now) // the members that have not accepted it are asked at once
	c.waits.Stir()
	return o.Task.advance(c, o)
}

// has reports whether p has answered.
func (r *read) has(p *peer, _ uint64) bool {
	return slices.ContainsFunc(r.answers, func(a probed) bool { return a.member == p.ID })
}

// covers reports whether enough members have answered, and this replica covers what they had seen.
// If enough have, their answers become the target, and it makes sure that it will.
func (s *survey) covers(c calls, enough bool) bool {
	if !s.fixed {
		if !enough {
			return false
		}
		s.fixed = true
		for _, a := range s.answers {
			s.target = s.target.Join(a.seen)
		}
	}
	if s.target.Leq(c.Seen()) {
		return true
	}
	for _, a := range s.answers {
		if p := c.peers.of(a.member); p != nil && !a.seen.Leq(c.Seen()) {
			c.in.Behind(c.now, a.seen, p.ID)
		}
	}
	return false
}

// reading reports whether any read waits for this replica to see more events.
func reading(w *waiting.Calls[Level, task]) bool {
	for o := range w.All() {
		switch o.Task.(type) {
		case *read, *confirm:
			return true
		}
	}
	return false
}

// drop removes answers of replicas that are no longer in view, or were replaced.
func (r *read) drop(c calls) {
	r.answers = slices.DeleteFunc(r.answers, func(a probed) bool {
		p := c.peers.of(a.member)
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
type cover struct{ want causal.Vector }

func (w *cover) has(p *peer, _ uint64) bool { return p.covers(w.want) }

func (w *cover) ask(c calls, o *group, p *peer) {
	if !w.has(p, 0) {
		c.bases.probe(c.step, p, w.want, &pb.Probe{Id: o.ID()})
	}
}

func (w *cover) advance(c calls, o *group) standing {
	s := c.unmet(o)
	s.done = c.count(w) >= s.need
	return s
}

// confirm waits until a majority has accepted the result of a linearizable read. A replica accepts
// a vector that it covers, unless it has accepted one that the vector does not cover. Of two
// vectors that majorities have accepted, a member of both has accepted one after the other, so one
// covers the other: reads return results in one order. A read that too many have refused proposes
// its present state, once that covers what they had accepted. So only concurrent reads of
// concurrent writes need another round.
type confirm struct {
	shown    history.State
	digest   uint64 // of its vector
	accepted []causal.Replica
	refused  []causal.Replica
	above    causal.Vector // what these had accepted
}

// propose returns the task that waits for the acceptance of a state, which some have accepted.
func propose(shown history.State, accepted []causal.Replica) *confirm {
	return &confirm{shown: shown, digest: digest(shown.Seen), accepted: accepted}
}

func (w *confirm) anew() task { return &read{} }

func (w *confirm) has(p *peer, _ uint64) bool {
	return p.speaks() && slices.Contains(w.accepted, p.replica)
}

func (w *confirm) ask(c calls, o *group, p *peer) {
	if !w.has(p, 0) {
		c.bases.probe(c.step, p, w.shown.Seen, &pb.Probe{Id: o.ID(), Proposes: true,
			Digest: w.digest})
	}
}

func (w *confirm) advance(c calls, o *group) standing {
	s := c.unmet(o)
	s.state = &w.shown
	if s.done = c.count(w) >= s.need; s.done || !w.hopeless(c) {
		return s
	}
	if !w.above.Leq(c.Seen()) {
		for _, p := range c.peers {
			if slices.Contains(w.refused, p.replica) {
				c.in.Behind(c.now, w.above, p.ID)
			}
		}
		return s
	}
	c.promise.accept(c.Seen())
	*w = *propose(c.history.State(), nil)
	o.AskSoon(c.now)
	c.waits.Stir()
	return s
}

// hopeless reports whether all members that count have answered the proposal, and some refused it.
func (w *confirm) hopeless(c calls) bool {
	return len(w.refused) > 0 && !slices.ContainsFunc(c.peers, func(p *peer) bool {
		return p.speaks() && !slices.Contains(w.accepted, p.replica) &&
			!slices.Contains(w.refused, p.replica)
	})
}

// reply takes the answer of a member to the proposal.
func (w *confirm) reply(p *peer, accepted uint64, above causal.Vector) {
	switch {
	case accepted == w.digest && !slices.Contains(w.accepted, p.replica):
		w.accepted = append(slices.Clip(w.accepted), p.replica)
	case above.Len() > 0 && !above.Leq(w.shown.Seen) && !slices.Contains(w.refused, p.replica):
		w.refused, w.above = append(w.refused, p.replica), w.above.Join(above)
	}
}

// promise is the largest vector that a linearizable read has proposed and this replica accepted
// [R33].
type promise struct{ accepted causal.Vector }

// accept records that a linearizable read proposes v, which this replica covers, unless it has
// accepted a vector that v does not cover.
func (p *promise) accept(v causal.Vector) bool {
	if !p.accepted.Leq(v) {
		return false
	}
	p.accepted = v
	return true
}

// startCover waits until enough replicas cover what an update without changes has observed [R34].
func (c calls) startCover(ev Update) {
	o, w := gather(c, ev.Level, &cover{})
	w.want = c.Seen() // including what the waiting updates observed
	c.call(o, ev.ID, 0, ev.Deadline)
}

// heldProbe is a probe of a member that waits until this replica covers want.
type heldProbe struct {
	member   string
	replica  causal.Replica
	id       uint64
	want     causal.Vector
	proposes bool
	deadline time.Time
}

// probes are the questions of linearizable reads and of calls, as this replica answers them.
type probes struct {
	held    []heldProbe // that wait until this replica covers their vectors
	promise promise
}

// maxHeld bounds the waiting probes.
const maxHeld = 1024

// onProbe replies at once, or when this replica covers the wanted vector, which the sender has.
func (c calls) onProbe(p *peer, payload []byte) error {
	var m pb.Probe
	if err := decode(payload, &m); err != nil {
		return err
	}
	want, err := c.bases.in(c.now, m.Want)
	if err != nil {
		return err
	}
	if m.First { // it proposes what has this digest
		same := m.Digest == digest(c.Seen())
		c.replyProbe(&c.promise, p, m.Id, c.Seen(), m.Proposes && same)
		return nil
	}
	if want.Leq(c.Seen()) {
		c.replyProbe(&c.promise, p, m.Id, want, m.Proposes)
		return nil
	}
	c.heard(p, want)
	if len(c.held) < maxHeld {
		c.held = append(c.held, heldProbe{p.ID, p.replica, m.Id, want, m.Proposes,
			c.now.Add(c.cfg.Patience)})
	}
	c.in.Behind(c.now, want, p.ID)
	return nil
}

// answerHeld replies to the probes whose wanted vectors are now covered.
func (c calls) answerHeld() {
	c.held = slices.DeleteFunc(c.held, func(h heldProbe) bool {
		p := c.peers.of(h.member)
		switch {
		case p == nil || p.replica != h.replica || !c.now.Before(h.deadline):
			return true
		case h.want.Leq(c.Seen()):
			c.replyProbe(&c.promise, p, h.id, h.want, h.proposes)
			return true
		}
		return false
	})
}

func (c calls) onProbeReply(p *peer, payload []byte) error {
	var m pb.ProbeReply
	if err := decode(payload, &m); err != nil {
		return err
	}
	v, err := c.bases.in(c.now, m.Seen)
	if err != nil {
		return err
	}
	above, err := c.bases.in(c.now, m.Above)
	if err != nil {
		return err
	}
	p.ready = m.Ready
	c.waits.Stir()
	c.heard(p, v)
	c.members.parts(p, m.Parting)
	p.keeps(v)
	same := c.under(p, m.Members)
	p.resigned, p.entering = same && m.Resigned, same && m.Entering
	for o := range c.waits.All() {
		if l, ok := o.Task.(*leave); ok && o.ID() == m.Id {
			l.knows = append(l.knows, p.replica)
		}
	}
	if !same || !m.Ready && !m.Resigned {
		return nil
	}
	c.vouched(p, v)
	for o := range c.waits.All() {
		if o.ID() != m.Id {
			continue
		}
		switch t := o.Task.(type) {
		case *confirm:
			t.reply(p, m.Accepted, above)
		case *read:
			if t.take(p, v); t.proposed != nil && m.Accepted == digest(t.proposed.Seen) &&
				!slices.Contains(t.accepted, p.replica) {
				t.accepted = append(t.accepted, p.replica)
			}
		case asker:
			t.take(p, v)
		}
	}
	return nil
}
