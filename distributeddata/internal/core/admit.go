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
//   - A new member needs the answers of a majority of the members it joins [M3]. Every earlier
//     quorum shares a member with them that had acknowledged before it recorded the new member.
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
func (c cluster) admit() {
	if c.members.ready || c.members.parting() || c.cfg.MinMembers < 1 || !c.members.viewed {
		return
	}
	switch own := c.members.Own(); {
	case own.Rank == quorum.Going && (own.Inc == c.members.inc || !c.disk.keeps()):
		// It cannot return; it enters again once it is gone.
	case own.Outside() || own.Inc != c.members.inc:
		if c.members.mayTake(c.step, own, c.peers, c.disk) {
			c.takePlace(own)
		}
	case own.Rank == quorum.Joining:
		if c.members.Clustered() && c.members.filled || c.members.allAnswered(c.peers) {
			c.enter(own)
		}
	case c.members.admitted(c.now, c.peers, c.disk, c.cfg.Patience):
		// Before any of its effects show.
		c.members.entering, c.members.counted, c.members.filled = false, true, true
		c.members.ready, c.disk.kept = true, c.disk.phase != NoDisk
		c.waits.Stir()
		for _, p := range c.peers {
			c.sendBeat(p)
		}
	}
}

// takePlace records this replica as the present incarnation of its member.
func (c cluster) takePlace(own quorum.Member) {
	if own.Inc.Number >= quorum.MaxOrdinal || own.Version >= quorum.MaxOrdinal {
		return
	}
	next := quorum.Incarnation{Number: own.Inc.Number + 1, Replica: c.Replica()}
	if !c.disk.foretold(next) {
		return
	}
	own.Inc = next
	entering := !own.Counts()
	switch {
	case own.Rank == quorum.Gone:
		own.Version, own.Rank, own.Order, own.Handed = own.Version+1, quorum.In, 0, false
	case own.Rank == quorum.Absent && (c.members.Clustered() || c.cfg.Recorded):
		own.Rank = quorum.In
	case own.Rank == quorum.Absent:
		own.Rank = quorum.Joining
	}
	if c.cfg.Recorded {
		c.members.roster.entering = entering
		c.propose(c.members.With(own))
		return
	}
	c.members.inc, c.members.entering = own.Inc, entering
	c.members.takeAt = c.now.Add(2 * c.cfg.BeatInterval)
	c.change(c.members.With(own))
}

// enter makes the other members count this replica, although it does not vote yet.
func (c cluster) enter(own quorum.Member) {
	own.Rank, c.members.entering = quorum.In, true
	c.change(c.members.With(own))
}

// refill requests answers from one member after the other while this replica is not ready, from
// each at most once per heartbeat interval. Once this replica has its place, only members that
// remember it are asked, and of these only the ones that have seen events which it lacks: the
// heartbeats of the others say enough. Before, where no cluster is known, members that have seen
// nothing else are not asked either.
func (in *intake) refill(h herald, ps peers) {
	if h.members.ready || in.Busy() {
		return
	}
	placed := h.members.hasPlace()
	for _, p := range ps {
		if p.replica == 0 || p.answered || h.now.Before(p.askAgain) || p.refilled && !p.ready ||
			!h.members.asks(p, placed, h.Seen()) {
			continue
		}
		p.askAgain = h.now.Add(h.cfg.BeatInterval)
		in.ask(h, p, false)
		return
	}
}

// Silent returns the members whose answers this replica still needs to become ready.
func (c *Core) Silent() (members []string) {
	if c.members.ready {
		return nil
	}
	for _, p := range c.peers {
		if !p.answered {
			members = append(members, p.ID)
		}
	}
	return members
}
