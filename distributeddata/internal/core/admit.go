package core

import "time"

// A replica starts empty and not ready: it merges, serves and takes local updates, but its word does not count in
// quorums until it has been refilled [R17], and until those that count have recorded that it is there:
//
//   - A member that is counted already, and restarts, needs the answers of N-W+1 that count: they meet every
//     quorum without the one that it was [M2].
//   - A newcomer needs the answers of a majority of those it comes to [M3]: every quorum from before meets that
//     in a member that had acknowledged before it recorded the newcomer.
//   - Where nobody is known to have counted, all that are known or seen must answer, and be MinMembers [M6].
//
//   - A member whose disk has all that it ever acknowledged needs no more than a majority, itself included, of such and
//     of those that count: they meet every quorum. If one that is in view does not answer it waits a while, since a
//     disk may have lost what it had acknowledged and not know it [R65].
//
// Answers count under the memory in which the replica has its place, and only under that.

// admit does what has become possible on the way to counting.
func (c *Core) admit() {
	if c.ready || c.parting() || c.cfg.MinMembers < 1 || !c.roll.viewed {
		return
	}
	switch own := c.own(); {
	case own.rank == going: // there is no way back: it enters anew once it is gone
	case own.rank == absent || own.rank == gone || own.inc != c.roll.inc:
		if c.mayTake(own) {
			c.takePlace(own)
		}
	case own.rank == joining:
		if c.clustered() && c.roll.filled || c.allAnswered() {
			c.enter(own)
		}
	case c.admitted():
		c.roll.entering, c.roll.counted, c.roll.filled = false, true, true // before anything of it shows
		c.ready, c.stirred, c.disk.kept = true, true, c.disk.phase != NoDisk
		for _, p := range c.peers {
			c.sendBeat(p)
		}
	}
}

// clustered reports whether anybody is known to count, or to have counted.
func (c *Core) clustered() bool { return c.roll.size > 0 || c.roll.count(gone) > 0 }

// mayTake reports whether this replica may take its place now. It first learns what others remember, and from a
// cluster that is there it is first filled, so that one that dies of the filling is never counted.
func (c *Core) mayTake(own remembered) bool {
	if c.now.Before(c.roll.takeAt) || c.usurped(own) || !c.consulted() {
		return false
	}
	spoke, gave, n := true, true, 1
	for _, p := range c.peers {
		spoke, gave = spoke && p.spoke, gave && p.gave
		if !p.titled || p.least > 0 {
			n++
		}
	}
	if c.cfg.Recorded && own.rank != in {
		return c.roll.filled || c.roll.size == 0
	}
	if c.clustered() {
		return c.roll.filled || gave && (n >= c.cfg.MinMembers || c.disk.keeps() && n >= majorityOf(c.size()))
	}
	return spoke && n >= c.cfg.MinMembers
}

// usurped reports whether a later process runs under this one's name. One that has never counted, and does not see
// the other, takes that for a former one of which it has not heard in time. One that has counted waits until the other
// has been out of view for long, since two that run would take the place from each other: each time twice as long [M2].
func (c *Core) usurped(own remembered) bool {
	if c.roll.inc.number == 0 || own.inc == c.roll.inc || own.rank != joining && own.rank != in {
		return false
	}
	p := c.peerOf(own.inc.replica)
	if p == nil && !c.roll.counted {
		return false
	}
	if c.roll.usurper != own.inc.replica {
		c.roll.usurper, c.roll.usurperAt = own.inc.replica, c.now
		c.roll.usurpers++
		c.emit(Usurped{By: c.roll.places[own.name]})
	}
	if p != nil {
		c.roll.usurperAt = c.now
	}
	wait := c.cfg.BeatInterval * usurperBeats << min(c.roll.usurpers-1, 10)
	return c.now.Before(c.roll.usurperAt.Add(wait))
}

// announced reports whether this replica has its place. One that has never counted, and whose place another has taken, begins
// anew: while it said otherwise, those that remember the other would take it for a former one and not fill it [R56].
func (c *Core) announced() bool {
	return c.roll.counted || c.roll.inc.number > 0 && c.own().inc == c.roll.inc
}

// usurperBeats is for how many heartbeat intervals a later process of this name has to be out of view before this one
// takes the place again.
const usurperBeats = 60

// takePlace records this replica as the present one of its member.
func (c *Core) takePlace(own remembered) {
	if own.inc.number >= maxOrdinal || own.version >= maxOrdinal {
		return
	}
	c.disk.takePlace(own.inc, c.roll.inc.number == 0 || own.inc != c.roll.inc)
	own.inc = incarnation{own.inc.number + 1, c.me}
	entering := own.rank != in
	switch {
	case own.rank == gone:
		own.version, own.rank, own.order = own.version+1, in, 0
	case own.rank == absent && (c.clustered() || c.cfg.Recorded):
		own.rank = in
	case own.rank == absent:
		own.rank = joining
	}
	if c.cfg.Recorded {
		c.roll.roster.entering = entering
		c.propose(c.roll.with(own))
		return
	}
	c.roll.inc, c.roll.entering = own.inc, entering
	c.roll.takeAt = c.now.Add(2 * c.cfg.BeatInterval)
	c.change(c.roll.with(own))
}

// enter makes this replica one that others count, although it does not vote yet.
func (c *Core) enter(own remembered) {
	own.rank, c.roll.entering = in, true
	c.change(c.roll.with(own))
}

// admitted reports whether so many have answered that this replica may count.
func (c *Core) admitted() bool {
	if c.cfg.Recorded && c.roll.size == 1 {
		return true // the record says that nobody else counts
	}
	base, have := 0, 0
	for _, r := range c.roll.all {
		if r.rank != in && r.rank != going {
			continue
		}
		if r.name == c.cfg.Member {
			if !c.roll.entering {
				base++
			}
			continue
		}
		p := c.peerOf(r.inc.replica)
		if p != nil && p.refilled && p.entering {
			continue // a newcomer that has never counted
		}
		base++
		if p != nil && p.answered {
			have++
		}
	}
	size := max(base, c.cfg.MinMembers)
	need := size - majorityOf(size) + 1
	if c.roll.entering {
		need = majorityOf(size)
	}
	return have >= need || c.allAnswered() || c.restarted()
}

// allAnswered reports whether all that are known or seen have answered under the present memory: whatever anybody
// holds is then here. So a cluster that starts cold becomes ready [M6]. Members that never counted and cannot be seen
// any more are left out: they may have died of the start.
func (c *Core) allAnswered() bool {
	n := 1
	for _, r := range c.roll.all {
		if r.name == c.cfg.Member || r.rank == gone {
			continue
		}
		switch p := c.peerOf(r.inc.replica); {
		case p == nil && r.rank == joining:
			continue
		case p == nil || !p.refilled:
			return false
		}
		n++
	}
	for _, p := range c.peers {
		if !p.refilled && (!p.titled || p.least > 0) {
			return false
		}
	}
	return n >= c.cfg.MinMembers
}

// refill asks one member after the other, while not ready, each at most once in a heartbeat interval. Once this
// replica has its place, only answers of those that remember that are of use.
func (c *Core) refill() {
	if c.ready || c.incoming != nil {
		return
	}
	placed := c.roll.inc.number > 0
	for _, p := range c.peers {
		if p.replica == 0 || p.answered || c.now.Before(p.askAgain) || p.refilled && !p.ready ||
			placed && p.memory != c.roll.digest || !placed && p.gave && !p.ready {
			continue
		}
		p.askAgain = c.now.Add(c.cfg.BeatInterval)
		c.request(p)
		return
	}
}

// Silent returns the members whose answers this replica waits for to become ready; none once it is.
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

// missing returns since when a member cannot be talked to; zero if it can.
func (c *Core) missing(r remembered) time.Time {
	if r.name == c.cfg.Member || c.peerOf(r.inc.replica) != nil {
		delete(c.roll.absent, r.name)
		return time.Time{}
	}
	if c.roll.absent == nil {
		c.roll.absent = map[string]time.Time{}
	}
	if _, ok := c.roll.absent[r.name]; !ok {
		c.roll.absent[r.name] = c.now
	}
	return c.roll.absent[r.name]
}
