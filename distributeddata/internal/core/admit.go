package core

import (
	"github.com/concord-go/concord/distributeddata/internal/quorum"
)

// A replica starts empty and not ready: it merges, serves and takes local updates. Its word does
// not count in quorums until it has been refilled [R23], and until the counting members have
// recorded that it is there:
//
//   - A member that is already counted and restarts needs the answers of N-W+1 counting members.
//     Together they intersect every quorum without the member's previous incarnation [M2].
//   - A newcomer needs the answers of a majority of the members it joins [M3]. Every earlier quorum
//     shares a member with them that had acknowledged before it recorded the newcomer.
//   - Where no member is known to have counted, all known or seen members must answer, and there
//     must be at least MinMembers of them [M6].
//
//   - A member whose disk has everything that it ever acknowledged needs only a majority, including
//     itself, of such members and of counting ones: they intersect every quorum. If one in view
//     does not answer, the member waits for a while, since a disk may have lost acknowledged data
//     without knowing it [R52].
//
// Answers count only under the memory in which the replica has its place.

// admit takes every possible step towards counting.
func (c *Core) admit() {
	if c.ready || c.parting() || c.cfg.MinMembers < 1 || !c.roll.viewed {
		return
	}
	switch own := c.roll.Own(); {
	case own.Rank == quorum.Going && (own.Inc == c.roll.inc || !c.disk.keeps()):
		// It cannot return; it enters again once it is gone.
	case own.Outside() || own.Inc != c.roll.inc:
		if c.mayTake(own) {
			c.takePlace(own)
		}
	case own.Rank == quorum.Joining:
		if c.roll.Clustered() && c.roll.filled || c.roll.allAnswered(c.peers) {
			c.enter(own)
		}
	case c.admitted():
		// Before any of its effects show.
		c.roll.entering, c.roll.counted, c.roll.filled = false, true, true
		c.ready, c.disk.kept = true, c.disk.phase != NoDisk
		c.waits.Stir()
		for _, p := range c.peers {
			c.sendBeat(p)
		}
	}
}

// mayTake reports whether this replica may take its place now. It first learns what other members
// remember. If a cluster exists, it is first refilled, so that a replica that dies while being
// refilled is never counted.
func (c *Core) mayTake(own quorum.Member) bool {
	if c.now.Before(c.roll.takeAt) || c.usurped(own) {
		return false
	}
	if c.cfg.Recorded {
		known, ask := c.roll.roster.consulted(c.now)
		if c.emit(ask); !known {
			return false
		}
	}
	spoke, gave, n := true, true, 1
	for _, p := range c.peers {
		spoke, gave = spoke && p.spoke, gave && p.gave
		if !p.titled || p.least > 0 {
			n++
		}
	}
	counted := own.Counts()
	if c.cfg.Recorded && !counted {
		return c.roll.filled || c.roll.Counted() == 0
	}
	if c.roll.Clustered() {
		return c.roll.filled || gave && (counted || c.roll.countedHere(c.peers)) &&
			(n >= c.cfg.MinMembers || c.disk.keeps() && n >= quorum.MajorityOf(c.roll.Size()))
	}
	return spoke && n >= c.cfg.MinMembers && (c.roll.Digest() != 0 || !c.peers.remember())
}

// usurped reports whether a later process runs under this one's name. A replica that has never
// counted, and does not see the other process, treats that one as a former one of which it has not
// heard in time. A replica that has counted waits until the other process has been out of view for
// long, each time twice as long, since two running processes would take the place from each other
// [M2].
func (c *Core) usurped(own quorum.Member) bool {
	if c.roll.inc.Number == 0 || own.Inc == c.roll.inc ||
		own.Rank != quorum.Joining && own.Rank != quorum.In {
		return false
	}
	p := c.peers.at(own.Inc.Replica)
	if p == nil && !c.roll.counted {
		return false
	}
	if c.roll.usurper != own.Inc.Replica {
		c.roll.usurper, c.roll.usurperAt = own.Inc.Replica, c.now
		c.roll.usurpers++
		c.emit(Usurped{By: c.roll.places[own.Name]})
	}
	if p != nil {
		c.roll.usurperAt = c.now
	}
	wait := c.cfg.BeatInterval * usurperBeats << min(c.roll.usurpers-1, 10)
	return c.now.Before(c.roll.usurperAt.Add(wait))
}

// usurperBeats is the number of heartbeat intervals for which a later process of this name must be
// out of view before this one takes the place again.
const usurperBeats = 60

// takePlace records this replica as the present incarnation of its member.
func (c *Core) takePlace(own quorum.Member) {
	if own.Inc.Number >= quorum.MaxOrdinal || own.Version >= quorum.MaxOrdinal {
		return
	}
	next := quorum.Incarnation{Number: own.Inc.Number + 1, Replica: c.Replica()}
	if !c.foretold(next) {
		return
	}
	own.Inc = next
	entering := !own.Counts()
	switch {
	case own.Rank == quorum.Gone:
		own.Version, own.Rank, own.Order, own.Handed = own.Version+1, quorum.In, 0, false
	case own.Rank == quorum.Absent && (c.roll.Clustered() || c.cfg.Recorded):
		own.Rank = quorum.In
	case own.Rank == quorum.Absent:
		own.Rank = quorum.Joining
	}
	if c.cfg.Recorded {
		c.roll.roster.entering = entering
		c.propose(c.roll.With(own))
		return
	}
	c.roll.inc, c.roll.entering = own.Inc, entering
	c.roll.takeAt = c.now.Add(2 * c.cfg.BeatInterval)
	c.change(c.roll.With(own))
}

// enter makes the other members count this replica, although it does not vote yet.
func (c *Core) enter(own quorum.Member) {
	own.Rank, c.roll.entering = quorum.In, true
	c.change(c.roll.With(own))
}

// admitted reports whether enough members have answered for this replica to count.
func (c *Core) admitted() bool {
	if c.cfg.Recorded && c.roll.Counted() == 1 {
		return true // the record says that no other member counts
	}
	base, have := c.roll.voters(c.peers)
	size := max(base, c.cfg.MinMembers)
	need := size - quorum.MajorityOf(size) + 1
	if c.roll.entering {
		need = quorum.MajorityOf(size)
	}
	return have >= need || c.roll.allAnswered(c.peers) || c.restarted()
}

// refill requests answers from one member after the other while this replica is not ready, from
// each at most once per heartbeat interval. Once this replica has its place, only members that
// remember it are asked, and of these only the ones that have seen events which it lacks: the
// heartbeats of the others say enough. Before, where no cluster is known, members that have seen
// nothing else are not asked either.
func (c *Core) refill() {
	if c.ready || c.in.Busy() {
		return
	}
	placed := c.roll.hasPlace()
	for _, p := range c.peers {
		if p.replica == 0 || p.answered || c.now.Before(p.askAgain) || p.refilled && !p.ready ||
			!c.asks(p, placed) {
			continue
		}
		p.askAgain = c.now.Add(c.cfg.BeatInterval)
		c.request(p)
		return
	}
}

// asks reports whether an answer of p may be of use.
func (c *Core) asks(p *peer, placed bool) bool {
	switch {
	case placed:
		return p.said.under(c.roll.Digest()) && !p.said.seen.Leq(c.Seen())
	case p.ready:
		return true
	case p.gave:
		return false
	}
	return c.roll.Clustered() || !p.spoke || !p.vector().Leq(c.Seen())
}

// Silent returns the members whose answers this replica still needs to become ready.
func (c *Core) Silent() (members []string) {
	if c.ready {
		return nil
	}
	for _, p := range c.peers {
		if !p.answered {
			members = append(members, p.ID)
		}
	}
	return members
}
