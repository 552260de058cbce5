package core

import (
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// retraction says that the events of a replica after a given one are not valid. The replica was
// restored from a snapshot, other members have its events from before the restore under the same
// numbers, and it has redone its own under another id [R66].
type retraction struct {
	replica causal.Replica
	after   uint64
	prints  []imprint // of the events after that one
	own     bool      // this process has retracted them, and notifies every member
	from    string    // otherwise, the member that reported it, which has none of these events
	without bool      // this replica has been equal to that member, so it has none either
	since   time.Time // when it was reported
}

// Bounds of retractions: how many are known, here or for a member, and the number of prints of
// each.
const (
	maxRetractions    = 16
	maxRetractedPrint = 4096
)

// has reports whether x is the print of the retracted event n.
func (r retraction) has(n uint64, x imprint) bool {
	return n > r.after && n-r.after <= uint64(len(r.prints)) && agree(x, r.prints[n-r.after-1])
}

// retract makes a retraction of the redone events. line are the prints of the events that the other
// member has in their place; they determine the first event in which the two histories differ. If
// they do not, nothing is retracted.
func (c *Core) retract(v *revoked, line heardPrints) {
	r := retraction{replica: v.was, own: true}
	for n := min(v.own, line.n); n > 0 && r.prints == nil; n-- {
		switch x := line.at(n); {
		case x == 0:
			return
		case x == v.prints.at(n): // and all before it are equal as well
			return
		case n-1 == v.common || agree(line.at(n-1), v.prints.at(n-1)):
			for r.after = n - 1; n <= v.own && len(r.prints) < maxRetractedPrint; n++ {
				r.prints = append(r.prints, v.prints.at(n))
			}
		}
	}
	if r.prints != nil {
		c.retracted = keepLast(c.retracted, r)
	}
}

// keepLast returns a new list: the last elements of list, and x.
func keepLast[T any](list []T, x T) []T {
	return append(slices.Clone(list[max(0, len(list)+1-maxRetractions):]), x)
}

// retractionOf returns the known retraction of a replica.
func (c *Core) retractionOf(r causal.Replica) (retraction, bool) {
	i := slices.IndexFunc(c.retracted, func(o retraction) bool { return o.replica == r })
	if i < 0 {
		return retraction{}, false
	}
	return c.retracted[i], true
}

// learnRetraction stores a retraction. It returns the stored one, and whether this replica has any
// of the retracted events. It drops waiting pushes of the same replica.
func (c *Core) learnRetraction(r retraction) (known retraction, holds bool) {
	for c.window.take(func(o waiting) bool { return o.d.origin == r.replica }) != nil {
		c.stats.WindowDrops++
	}
	known, ok := c.retractionOf(r.replica)
	if !ok {
		known = r
		c.retracted = keepLast(c.retracted, r)
	}
	return known, c.holds(known)
}

// holds reports whether this replica is known to have any of the retracted events.
func (c *Core) holds(r retraction) bool {
	for n, x := range c.heardOf[r.replica].all() {
		if r.has(n, x) {
			return true
		}
	}
	return false
}

// tellRetractions sends own retractions to each member until it has replied that it has none of
// these events.
func (c *Core) tellRetractions() {
	if c.revoked != nil { // the state that members would ask for is not there yet
		return
	}
	for _, r := range c.retracted {
		for _, p := range c.peers {
			if r.own && p.replica != 0 && !slices.Contains(p.cleared, r.replica) {
				c.sendRetract(p, r)
			}
		}
	}
}

// passOn sends a retraction to p, if p may then ask this replica for the valid state.
func (c *Core) passOn(p *peer, r retraction) {
	if c.revoked == nil && c.lacks(r.replica) {
		c.sendRetract(p, r)
	}
}

func (c *Core) sendRetract(p *peer, r retraction) {
	c.send(p, wire.ReplicatorRetract, encode(&pb.Retract{Replica: uint64(r.replica), After: r.after,
		Prints: r.prints}))
}

// onRetract handles a retraction, or the reply to one. A running replica has not been retracted.
func (c *Core) onRetract(p *peer, payload []byte) error {
	var m pb.Retract
	if err := decode(payload, &m); err != nil {
		return err
	}
	r := retraction{replica: causal.Replica(m.Replica), after: m.After, prints: m.Prints,
		from: p.ID, since: c.now}
	if len(r.prints) > maxRetractedPrint {
		return malformed("retraction of %d events, limit %d", len(r.prints), maxRetractedPrint)
	}
	if m.None {
		c.cleared(p, r.replica)
		return nil
	}
	if r.replica == 0 || r.replica == c.me || c.peerOf(r.replica) != nil || c.revoked != nil {
		return nil // it will be sent again
	}
	switch known, holds := c.learnRetraction(r); {
	case c.lacks(r.replica):
		c.send(p, wire.ReplicatorRetract, encode(&pb.Retract{Replica: m.Replica, None: true}))
	// If this replica does not know whether it has retracted events, and has become equal to no
	// member that lacks them, it gives up after Patience.
	case holds, !c.now.Before(known.since.Add(c.cfg.Patience)):
		c.giveUp(p, known)
	}
	return nil
}

// lacks reports whether this replica certainly has none of the retracted events of another. Without
// prints that is certain if nothing after the last common event is covered, or if this replica has
// been equal to one that has none.
func (c *Core) lacks(replica causal.Replica) bool {
	r, ok := c.retractionOf(replica)
	return ok && (r.own || r.without || c.seen.Get(replica) <= r.after || c.printOf(replica) != 0 &&
		!c.holds(r))
}

// equalTo records that this replica's state equals that of p.
func (c *Core) equalTo(p *peer) {
	for i, r := range c.retracted {
		if r.from == p.ID && !r.without {
			c.retracted = slices.Clone(c.retracted)
			c.retracted[i].without = true
		}
	}
}

// cleared records that p has none of the retracted events of a replica.
func (c *Core) cleared(p *peer, r causal.Replica) {
	if _, known := c.retractionOf(r); known && !slices.Contains(p.cleared, r) {
		p.cleared = keepLast(p.cleared, r)
	}
}

// giveUp makes this replica stop covering the retracted events, and makes it replace its own state
// with that of p, as if it had been restored itself [R57].
func (c *Core) giveUp(p *peer, r retraction) {
	c.end()
	c.revoke(r.replica, r.after)
	delete(c.heardOf, r.replica)
	c.told, c.implied, c.last = causal.Vector{}, causal.Vector{}, causal.Vector{}
	c.incoming = nil
	clear(c.outgoing)
	c.revoked = &revoked{from: p.ID, gives: r.replica, keys: map[string]*effects{}}
}

// denied reports whether p must not be answered. Either p has or may have retracted events, and is
// sent the retraction; or its own events differ from those that this replica has of it, and it is
// sent their prints [R57]. A member that asks for a whole state replaces its own with it.
func (c *Core) denied(p *peer, have causal.Vector, told origins, whole bool) bool {
	return c.stale(p, have, told, whole) || c.contests(p, have, origins{p.replica: told[p.replica]})
}

// stale reports whether p, with vector v and the prints told, has retracted events, or may have
// some and is not exchanging a whole state. If so, p is sent the retraction.
func (c *Core) stale(p *peer, v causal.Vector, told origins, whole bool) bool {
	for _, r := range c.retracted {
		n, x := v.Get(r.replica), told.last(r.replica)
		if r.has(n, x) || x == 0 && n > r.after && !whole &&
			!slices.Contains(p.cleared, r.replica) {
			c.passOn(p, r)
			return true
		}
	}
	return false
}

// refused reports whether an answer must not be applied because it comes from another history than
// this replica's. As long as the replica whose numbers name different events in the two histories
// may still learn of that and retract one side's, this replica waits. A replica that has to redo
// its own events takes, for a while, no state from a member that has just those events, since the
// other events are elsewhere.
func (c *Core) refused(p *peer, r *request) bool {
	h := &r.stage.head
	if c.stale(p, h.head, h.prints, r.whole) {
		return true
	}
	wait := c.cfg.BeatInterval * forkBeats
	if r.whole {
		return c.revoked.shared(h) && c.now.Before(c.revoked.since.Add(wait))
	}
	if !c.contests(p, h.head, h.prints) {
		return false
	}
	if c.contested.IsZero() || c.now.After(c.contested.Add(2*wait)) {
		c.contested = c.now
	}
	return c.now.Before(c.contested.Add(wait))
}

// contests reports whether the prints of p's events, in vector v, contradict those that this
// replica knows, for any other origin. It notifies these origins of both histories, since one of
// the two members may not reach them.
func (c *Core) contests(p *peer, v causal.Vector, told origins) (found bool) {
	for _, r := range slices.Sorted(maps.Keys(told)) {
		its := heardPrints{v.Get(r), told[r]}
		if r == c.me || !c.contradicts(r, its) {
			continue
		}
		found = true
		c.stats.Forks++
		if o := c.peerOf(r); o != nil {
			c.sendAck(o, c.heardOf[r].last)
			if o != p {
				c.send(o, wire.ReplicatorAck, encodeOther(p.ID, its.n, its.last))
			}
		}
	}
	return found
}

// contradicts reports whether any of an origin's prints differs from the one that this replica
// knows.
func (c *Core) contradicts(r causal.Replica, h heardPrints) bool {
	for n, x := range h.all() {
		if contradict(c.printAt(r, n), x) {
			return true
		}
	}
	return false
}
