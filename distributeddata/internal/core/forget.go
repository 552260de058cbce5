package core

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// ForgetError is the error of a Forget that cannot be carried out.
type ForgetError struct{ Member, Why string }

func (e *ForgetError) Error() string {
	return fmt.Sprintf("member %q cannot be forgotten: %s", e.Member, e.Why)
}

// removal removes a member from the count. When a majority answers under one memory, the member is
// marked as going: it no longer votes but still counts [M4]. Then what a majority has seen under
// that mark is brought to a majority of the remaining members, and the member is gone [M5]. It is
// marked only if enough of the remaining members answer at that moment. A change of the memory
// restarts the removal.
//
// A member that leaves while all others leave too does not wait to be removed: it has handed over
// what it had, and none stays to answer. A record is changed nevertheless.
type removal struct {
	survey
	victim  string
	leaves  bool          // the victim is this member
	last    bool          // and the only one that the record counts
	want    causal.Vector // what the remaining members must cover
	brought bool
}

func (r *removal) anew() task { return &removal{victim: r.victim, leaves: r.leaves} }

func (r *removal) take(p *peer, v causal.Vector) {
	if p.helps() && !r.fixed && !slices.ContainsFunc(r.answers, func(a probed) bool {
		return a.replica == p.replica
	}) {
		r.answers = append(r.answers, probed{p.ID, p.replica, v})
	}
}

func (r *removal) ask(c calls, o *group, p *peer) {
	if !r.has(p, 0) {
		c.bases.probe(c.step, p, r.want, &pb.Probe{Id: o.ID()})
	}
}

func (r *removal) has(p *peer, _ uint64) bool {
	switch {
	case r.brought && r.last:
		return !p.parts && r.want.Leq(p.kept)
	case r.brought:
		return p.covers(r.want)
	}
	return slices.ContainsFunc(r.answers, func(a probed) bool { return a.replica == p.replica })
}

func (r *removal) advance(c calls, o *group) standing {
	s := r.progress(c, o)
	if o.Task == task(r) && r.leaves && !c.cfg.Recorded && c.members.othersLeave(c.peers) {
		s.hopeless = true
	}
	return s
}

func (r *removal) progress(c calls, o *group) standing {
	size := max(c.members.Counted()-c.peers.neverCounted(), c.cfg.MinMembers)
	s := standing{need: quorum.MajorityOf(size), self: c.self(), upTo: math.MaxUint64}
	c.members.sealed = r.leaves && r.brought
	switch v := c.members.Of(r.victim); {
	case v.Outside() && r.leaves && c.history.Uncopied() > 0 && c.members.heirs(c.peers) > 0:
		c.stay(o) // others have finished it, without what only this replica has
		return o.Task.advance(c, o)
	case v.Outside():
		s.done = true
		return s
	case v.Rank != quorum.Going:
		if r.leaves && !c.members.MayGo(r.victim) {
			c.stay(o)
			return o.Task.advance(c, o)
		}
		if s.self+len(r.answers) >= s.need &&
			c.members.myTurn(c.peers, r.leaves || c.members.leaving) &&
			r.staying(c) >= c.members.Needed(r.victim) {
			v.Rank = quorum.Going
			c.propose(c.members.With(v))
		}
		return s
	case c.members.resigned:
		s.self = 1 // a member may lead its own removal, contributing what it has seen
	}
	if c.cfg.Recorded {
		// The record orders removals, so the answers only have to include one of every quorum. Of
		// two members, one that has died while it was going is not needed.
		s.need = size - quorum.MajorityOf(size) + 1
	}
	if !r.covers(c, s.self+len(r.answers) >= s.need) {
		return s
	}
	if !r.brought {
		o.AskSoon(c.now)
		c.waits.Stir()
		if r.leaves && c.history.Open() > 0 {
			return s // the next step ends them
		}
		r.brought, r.want, c.members.sealed = true, c.Seen(), r.leaves
	}
	s.need, s.self = c.members.Needed(r.victim), c.self()
	if r.last = r.leaves && r.want.Len() > 0 && c.members.Sole(r.victim); r.last {
		s.need = c.members.heirs(c.peers) // any of them may be the next to count
	}
	if s.done = s.self+c.peers.others(r) >= s.need; s.done {
		c.members.withdrawn = c.members.withdrawn || r.leaves
		c.propose(c.members.Leave(r.victim, r.leaves && c.handed(r.want)))
		s.done = c.members.Of(r.victim).Rank == quorum.Gone
	}
	return s
}

// handed reports whether v covers all that this replica and the earlier incarnations of its process
// have done. It is sealed, so it does nothing else.
func (c calls) handed(v causal.Vector) bool {
	return c.members.sealed && c.members.Own().Inc == c.members.inc && c.history.AllIn(v)
}

// staying counts the members that have answered and stay.
func (r *removal) staying(c calls) (n int) {
	if !r.leaves {
		n = c.self()
	}
	for _, a := range r.answers {
		if p := c.peers.at(a.replica); p != nil && p.name != r.victim {
			n++
		}
	}
	return n
}

// forget starts removing a member that has stopped [M7].
func (c calls) forget(ev Forget) {
	v := c.members.Of(ev.Member)
	silence := c.cfg.longestSilence(len(c.peers))
	if err := c.members.forgettable(c.now, v, c.peers, silence); err != nil {
		c.emit(Done{ID: ev.ID, Err: err})
		return
	}
	switch {
	case ev.Force && c.cfg.Recorded:
		c.askFor(ev.ID, &expulsion{ev.Member, c.members.inc}, ev.Deadline)
	case ev.Force:
		c.change(c.members.Leave(ev.Member, false))
		c.emit(Done{ID: ev.ID})
	default:
		c.askFor(ev.ID, &removal{victim: ev.Member}, ev.Deadline)
	}
}

// forgettable returns an error if a member cannot be forgotten: one that has been heard of within
// the silence runs.
func (r *members) forgettable(now time.Time, v quorum.Member, ps peers,
	silence time.Duration) error {
	switch {
	case v.Name == r.Own().Name:
		return &ForgetError{v.Name, "it is this member, which leaves when it is closed"}
	case v.Outside():
		return &ForgetError{v.Name, "it is not counted; the counted members are " +
			strings.Join(r.Names(), ", ")}
	}
	if p := ps.at(v.Inc.Replica); p != nil && now.Before(p.heardAt.Add(silence)) {
		return &ForgetError{v.Name, "it answers, at " + p.Address + "; stop it first"}
	}
	return nil
}

// longestSilence returns the longest time for which one of so many other members may not be heard
// of although it runs, if messages get through.
func (c Config) longestSilence(others int) time.Duration {
	return time.Duration(3+others/max(1, c.BeatPeers)) * c.BeatInterval
}

// tidy completes removals that other members have started, and starts removing members that have
// been out of view for too long [M8]. The member that is first in the order of names starts; each
// of the others waits a little longer.
func (c calls) tidy() {
	switch {
	case c.members.leaving:
		c.makeRoom()
		return
	case !c.counts() && !c.members.resigned:
		return
	}
	for name := range c.members.absent {
		if r := c.members.Of(name); r.Outside() {
			delete(c.members.absent, name)
		}
	}
	wait := time.Duration(2+c.peers.before(c.cfg.Member)) * c.cfg.BeatInterval
	for _, r := range c.members.Members() {
		reached := r.Name == c.cfg.Member || c.peers.at(r.Inc.Replica) != nil
		switch since := c.members.missing(r.Name, reached, c.now); {
		case r.Name == c.cfg.Member || r.Rank == quorum.Gone:
		case r.Rank == quorum.Going && since.IsZero():
			// If it leaves, it does that itself; otherwise soon.
			if p := c.peers.at(r.Inc.Replica); !p.leaving {
				c.remove(r.Name)
			}
		case since.IsZero():
		case r.Rank == quorum.Going && c.now.Sub(since) >= wait:
			c.remove(r.Name)
		case c.counts() && c.cfg.ForgetAfter > 0 &&
			c.now.Sub(since) >= c.cfg.ForgetAfter+wait && c.members.MayShrink(r):
			c.remove(r.Name)
		}
	}
}

// makeRoom starts removing a missing member before this one leaves in order, unless that has just
// vanished and may be back in a moment. A missing member that runs comes back as a new member.
func (c calls) makeRoom() {
	if name := c.inTheWay(); name != "" &&
		c.now.Sub(c.members.missing(name, false, c.now)) >= backBeats*c.cfg.BeatInterval {
		c.remove(name)
	}
}

// backBeats is the number of heartbeat intervals for which a member that leaves in order waits for
// a missing one.
const backBeats = 3

// inTheWay returns a missing member that must be gone before this one leaves in order, or "". If
// the others in view are no majority of those that are counted beside it, they can neither agree
// that it leaves, nor admit it when it comes back [M8]. Without ForgetAfter nobody is in the way.
func (c cluster) inTheWay() (missing string) {
	if !c.counts() || c.cfg.ForgetAfter <= 0 ||
		c.peers.voters() >= quorum.MajorityOf(c.members.Beside()) {
		return ""
	}
	for _, r := range c.members.Members() {
		if r.Name != c.cfg.Member && c.peers.at(r.Inc.Replica) == nil &&
			(r.Rank == quorum.Going || r.Rank == quorum.In && c.members.MayShrink(r)) {
			return r.Name
		}
	}
	return ""
}

// remove starts removing a member without a call, unless its removal is in progress.
func (c calls) remove(name string) {
	for o := range c.waits.All() {
		if r, ok := o.Task.(*removal); ok && r.victim == name {
			return
		}
	}
	c.ids.last++
	o := c.waits.Keep(1<<63|c.ids.last, Level{Kind: Majority}, &removal{victim: name})
	c.waits.Ask(c.now, o)
	c.askMembers(o)
	c.waits.Stir()
}
