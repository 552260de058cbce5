package core

import (
	"math"

	"github.com/concord-go/concord/internal/causal"
)

// leave waits until a majority of the other members, ready or not, covers all that this replica has seen [R21a, R53]:
// what it acknowledged to others, or received at its start, may be on no other that stays. Then, if the member is
// to be forgotten, that begins. Own events that are to be done again are done again before.
type leave struct {
	want   causal.Vector
	forget bool
	early  bool // own events are to be done again first [R57]
}

func (l *leave) anew() task { return l }

// ask lets p fetch what it lacks without waiting for a heartbeat.
func (l *leave) ask(c *Core, o *operation, p *peer) {
	if !l.has(p, 0) {
		c.probe(p, o.id, l.want)
	}
}

// has reports whether p covers what this replica hands over. One that is going leaves for good.
func (l *leave) has(p *peer, _ uint64) bool { return !p.parts && !p.goes && l.want.Leq(p.kept) }

func (l *leave) advance(c *Core, o *operation) (s standing) {
	if l.want.Len() > 0 {
		s.need = min(c.heirs(), majorityOf(c.beside()))
		if l.forget && c.sole(c.cfg.Member) {
			s.need = c.heirs() // any of them may be the next that counts
		}
	}
	if len(c.peers) == 0 && (s.need > 0 || c.cfg.MinMembers > 1 && c.Uncopied() > 0) {
		s.need, s.hopeless = max(1, s.need), true
		return s
	}
	if c.revoked != nil {
		return s
	}
	if l.early {
		l.early, l.want, o.again = false, c.seen, c.now
	}
	s.done, s.upTo = c.others(l) >= s.need, math.MaxUint64
	if s.done && l.forget {
		return c.depart(o)
	}
	return s
}

// beside is how many quorums are counted in but for this member, which may have been forgotten already.
func (c *Core) beside() int {
	if r := c.own().rank; r == in || r == going {
		return c.size() - 1
	}
	return c.size()
}

// heirs counts the members that what this replica holds can be handed over to: those that are remembered, in view or
// not, and those in view that have no place yet; but for those that leave themselves. What comes to these after they
// have begun to leave they hand over to nobody.
func (c *Core) heirs() (n int) {
	for _, r := range c.roll.all {
		if (r.rank == in || r.rank == joining) && r.name != c.cfg.Member && !c.roll.parted[r.inc.replica] {
			n++
		}
	}
	for _, p := range c.peers {
		if r := c.roll.at(p.replica).rank; (r == absent || r == gone) && !p.parts {
			n++
		}
	}
	return n
}

// parting reports whether this replica leaves.
func (c *Core) parting() bool { return c.leaving || c.roll.leaving }

// parts notes whether p has said that it leaves. It does not come back from that, and is remembered when it is out of
// view.
func (c *Core) parts(p *peer, says bool) {
	if !says || p.parts {
		return
	}
	p.parts, c.stirred = true, true
	if c.roll.parted == nil {
		c.roll.parted = map[causal.Replica]bool{}
	}
	c.roll.parted[p.replica] = true
}

// keeps notes what p has said that it has. If it begins to leave later, it hands that over.
func (p *peer) keeps(v causal.Vector) {
	if !p.parts && p.kept.Leq(v) {
		p.kept = v
	}
}

// depart goes on to being forgotten; or, if too few stay to agree to that, to a plain leave: what this replica has
// acknowledged meanwhile must be handed over too.
func (c *Core) depart(o *operation) standing {
	if c.mayGo(c.cfg.Member) {
		o.task = &removal{victim: c.cfg.Member}
	} else {
		c.stay(o)
	}
	o.again, c.stirred = c.now, true
	return o.task.advance(c, o)
}

func (c *Core) stay(o *operation) {
	c.leaving, c.roll.leaving = true, false
	o.task, o.again, c.stirred = &leave{want: c.seen}, c.now, true
	for _, p := range c.peers {
		c.sendBeat(p)
	}
}

// drain begins to leave. A replica that is not to be forgotten counts nowhere from now on: what it acknowledged
// later, nobody would be handed. One that is goes on until it is marked as going [M4].
func (c *Core) drain(ev Drain) {
	forget := ev.Leave && c.counts() && c.mayGo(c.cfg.Member)
	c.leaving, c.roll.leaving = !forget, forget
	for _, p := range c.peers {
		c.sendBeat(p)
	}
	o := &operation{level: Level{Kind: Majority}, task: &leave{c.seen, forget, c.revoked != nil}}
	c.ops = append(c.ops, o)
	c.call(o, ev.ID, 0, ev.Deadline)
	c.askAll(o)
	c.begin(o)
	c.stirred = true
}
