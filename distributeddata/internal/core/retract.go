package core

import (
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// retraction says that events of a replica, those behind one, do not hold: it was restored from a snapshot, others
// have what it did before the restore under the same numbers, and it has done these again under another id [R66].
type retraction struct {
	replica causal.Replica
	after   uint64
	prints  []imprint // of the events behind it
	own     bool      // this process has retracted them, and tells every member
	from    string    // else the member that told of it, which has none of these events
	without bool      // this replica has been equal to that one: it has none either
	since   time.Time // that was told
}

// Bounds of retractions: how many are known, here or of a member, and how many prints each has.
const (
	maxRetractions    = 16
	maxRetractedPrint = 4096
)

// has reports whether x is the print of the retracted event n.
func (r retraction) has(n uint64, x imprint) bool {
	return n > r.after && n-r.after <= uint64(len(r.prints)) && agree(x, r.prints[n-r.after-1])
}

// retract makes a retraction of the events that have been done again. line are the prints of the events that the other
// member has in their place: they say which are the first that the two have apart. If they do not, nothing is retracted.
func (c *Core) retract(v *revoked, line heardPrints) {
	r := retraction{replica: v.was, own: true}
	for n := min(v.own, line.n); n > 0 && r.prints == nil; n-- {
		switch x := line.at(n); {
		case x == 0:
			return
		case x == v.prints.at(n): // and so are all before it
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

// keepLast returns a list of its own: the last of those before, and x.
func keepLast[T any](list []T, x T) []T {
	return append(slices.Clone(list[max(0, len(list)+1-maxRetractions):]), x)
}

// retractionOf returns what is known to be retracted of a replica.
func (c *Core) retractionOf(r causal.Replica) (retraction, bool) {
	i := slices.IndexFunc(c.retracted, func(o retraction) bool { return o.replica == r })
	if i < 0 {
		return retraction{}, false
	}
	return c.retracted[i], true
}

// learnRetraction keeps a retraction, and returns it as it is kept, and whether this replica has any of the retracted
// events. Pushes that wait and are of the same replica are dropped.
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

// holds reports whether this replica has any of the retracted events, as far as it knows.
func (c *Core) holds(r retraction) bool {
	for n, x := range c.heardOf[r.replica].all() {
		if r.has(n, x) {
			return true
		}
	}
	return false
}

// tellRetractions tells the members of own retractions until each has said that it holds none of these events.
func (c *Core) tellRetractions() {
	if c.revoked != nil { // what it would be asked for is not there yet
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

// passOn tells p of a retraction, if this replica may be asked for what holds instead.
func (c *Core) passOn(p *peer, r retraction) {
	if c.revoked == nil && c.lacks(r.replica) {
		c.sendRetract(p, r)
	}
}

func (c *Core) sendRetract(p *peer, r retraction) {
	c.send(p, wire.ReplicatorRetract, encode(&pb.Retract{Replica: uint64(r.replica), After: r.after, Prints: r.prints}))
}

// onRetract takes a retraction, or the answer to one. A replica that runs has retracted nothing.
func (c *Core) onRetract(p *peer, payload []byte) error {
	var m pb.Retract
	if err := decode(payload, &m); err != nil {
		return err
	}
	r := retraction{replica: causal.Replica(m.Replica), after: m.After, prints: m.Prints, from: p.ID, since: c.now}
	if len(r.prints) > maxRetractedPrint {
		return malformed("retraction of %d events, limit %d", len(r.prints), maxRetractedPrint)
	}
	if m.None {
		c.cleared(p, r.replica)
		return nil
	}
	if r.replica == 0 || r.replica == c.me || c.peerOf(r.replica) != nil || c.revoked != nil {
		return nil // it is told again
	}
	switch known, holds := c.learnRetraction(r); {
	case c.lacks(r.replica):
		c.send(p, wire.ReplicatorRetract, encode(&pb.Retract{Replica: m.Replica, None: true}))
	case holds, !c.now.Before(known.since.Add(c.cfg.Patience)): // or it does not know, and has become equal to nobody
		c.giveUp(p, known)
	}
	return nil
}

// lacks reports whether it is certain that this replica has none of the retracted events of another. Without prints it
// is when nothing behind the last common event is covered, or the replica has been equal to one that has none.
func (c *Core) lacks(replica causal.Replica) bool {
	r, ok := c.retractionOf(replica)
	return ok && (r.own || r.without || c.seen.Get(replica) <= r.after || c.printOf(replica) != 0 && !c.holds(r))
}

// equalTo notes that this replica holds what p holds.
func (c *Core) equalTo(p *peer) {
	for i, r := range c.retracted {
		if r.from == p.ID && !r.without {
			c.retracted = slices.Clone(c.retracted)
			c.retracted[i].without = true
		}
	}
}

// cleared notes that p has none of the retracted events of a replica.
func (c *Core) cleared(p *peer, r causal.Replica) {
	if _, known := c.retractionOf(r); known && !slices.Contains(p.cleared, r) {
		p.cleared = keepLast(p.cleared, r)
	}
}

// giveUp makes this replica one that does not cover the retracted events, and has it take the state of p in the place
// of its own, as if it had been restored itself [R57].
func (c *Core) giveUp(p *peer, r retraction) {
	c.end()
	c.revoke(r.replica, r.after)
	delete(c.heardOf, r.replica)
	c.told, c.implied, c.last = causal.Vector{}, causal.Vector{}, causal.Vector{}
	c.incoming = nil
	clear(c.outgoing)
	c.revoked = &revoked{from: p.ID, gives: r.replica, keys: map[string]*effects{}}
}

// denied reports whether p may not be answered: it has retracted events, or may have some, and is told so; or it has
// other events under its own numbers than this replica, and is told those [R57]. Who wants a whole state puts it in the
// place of its own.
func (c *Core) denied(p *peer, have causal.Vector, told origins, whole bool) bool {
	return c.stale(p, have, told, whole) || c.contests(p, have, origins{p.replica: told[p.replica]})
}

// stale reports whether p, which has seen v and told these prints, has retracted events, or may have some and wants or
// sends no whole state. It is told so.
func (c *Core) stale(p *peer, v causal.Vector, told origins, whole bool) bool {
	for _, r := range c.retracted {
		n, x := v.Get(r.replica), told.last(r.replica)
		if r.has(n, x) || x == 0 && n > r.after && !whole && !slices.Contains(p.cleared, r.replica) {
			c.passOn(p, r)
			return true
		}
	}
	return false
}

// refused reports whether an answer must not be applied: it comes from another history than that of this replica. As
// long as the replica whose events the two have under the same numbers may still hear of it and retract those of one side,
// that is waited for. A replica that is to do its own events again takes no state of one that has just those, for a while:
// the others that it is to go on from are elsewhere.
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

// contests reports whether the prints of what p has seen, v, contradict those that this replica knows, of any other
// origin. These origins are told what both of them have: one of the two may not reach them.
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

// contradicts reports whether any of some prints of an origin is another than this replica knows.
func (c *Core) contradicts(r causal.Replica, h heardPrints) bool {
	for n, x := range h.all() {
		if contradict(c.printAt(r, n), x) {
			return true
		}
	}
	return false
}
