package core

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// An imprint, or print, is a hash of the effects of an origin's events up to a number, chained from
// event to event [R4]. Equal prints mean that a number names the same event on both sides. 0
// stands for an unknown print.
type imprint = uint32

// ownPrints are the prints of own events: of[i] is the print of the events up to from+i.
type ownPrints struct {
	from  uint64
	of    []imprint
	chain uint64 // the last print, in full
	room  []imprint
}

// apart makes the prints of events that were committed together differ.
const apart = 0x9e3779b97f4a7c15

// maxPrints bounds the prints that an origin keeps of its own events. Older events are not
// compared.
const maxPrints = 1 << 16

// add computes the prints of the next events, from first to n, which were committed together, from
// the previous print, the state after the events, what the replica had seen, and the time. Each of
// them depends on all the events: only together do these have the meaning of their numbers.
func (o *ownPrints) add(first, n uint64, sum Sum, seen causal.Vector, clock uint64) {
	if first != o.from+uint64(len(o.of)) || first == 0 { // the first, or a panic left a gap
		o.from, o.of = first-1, append(o.of[:0:0], 0)
	}
	h := newHash()
	for _, x := range [...]uint64{o.chain, n, sum[0], sum[1], seen.Hash(), clock} {
		h.number(x)
	}
	o.chain = h.Sum64()
	for i := first; i <= n; i++ {
		o.of = append(o.of, imprint(o.chain+(n-i)*apart)|1)
	}
	if len(o.of) > 2*maxPrints {
		o.from += uint64(len(o.of) - maxPrints)
		o.of = slices.Clone(o.of[len(o.of)-maxPrints:])
	}
}

// at returns the print of the events up to n, or 0.
func (o *ownPrints) at(n uint64) imprint {
	if n < o.from || n-o.from >= uint64(len(o.of)) {
		return 0
	}
	return o.of[n-o.from]
}

// behind returns the print of the events up to n and the prints of the following count events. The
// result is valid until the next call.
func (o *ownPrints) behind(n uint64, count int) []imprint {
	o.room = o.room[:0]
	for i := range count + 1 {
		o.room = append(o.room, o.at(n+uint64(i)))
	}
	return o.room
}

// heardPrint is the print of another origin's events up to n.
type heardPrint struct {
	n uint64
	x imprint
}

// keepOrigins bounds the origins that are not in view and whose prints are kept.
const keepOrigins = 1024

// at returns the print of the events up to n, or 0.
func (h heardPrint) at(n uint64) imprint {
	if h.n == n {
		return h.x
	}
	return 0
}

// contradict reports whether two prints of one number are both known and differ.
func contradict(a, b imprint) bool { return a != 0 && b != 0 && a != b }

// prints are those of all origins, as far as they are known.
type prints struct {
	me    causal.Replica
	own   ownPrints
	heard map[causal.Replica]heardPrint
}

func newPrints(me causal.Replica) prints {
	return prints{me: me, heard: map[causal.Replica]heardPrint{}}
}

// at returns the print of the events of a replica up to n, or 0.
func (x *prints) at(r causal.Replica, n uint64) imprint {
	if r == x.me {
		return x.own.at(n)
	}
	return x.heard[r].at(n)
}

// of returns the print of the events of an origin that this replica has applied, or 0.
func (x *prints) of(r causal.Replica, seen causal.Vector) imprint { return x.at(r, seen.Get(r)) }

// same reports whether a push continues or repeats the events that this replica has of its origin,
// as far as is known.
func (x *prints) same(d *delta, seen causal.Vector) bool {
	n, from := min(seen.Get(d.origin), d.head.Get(d.origin)), d.base.Get(d.origin)
	if n < from || n-from >= uint64(len(d.prints)) {
		return true
	}
	return !contradict(x.heard[d.origin].at(n), d.prints[n-from])
}

// push records the last print of an applied push.
func (x *prints) push(d *delta, ps peers) {
	n := d.head.Get(d.origin)
	if len(d.prints) > 0 && x.heard[d.origin].n <= n {
		x.keep(d.origin, heardPrint{n, d.prints[len(d.prints)-1]}, ps)
	}
}

// out returns the prints of the events that this replica has applied of itself and of the members
// that it sees or remembers. The receiver may see more members than this replica does; without a
// print it would have to trust a vector alone that this replica has what the origin did.
func (x *prints) out(seen causal.Vector, ps peers, counted quorum.Memory) origins {
	out := origins{}
	tell := func(r causal.Replica) {
		if p := x.of(r, seen); p != 0 {
			out[r] = p
		}
	}
	for _, p := range ps {
		tell(p.replica)
	}
	for _, r := range counted.Members() {
		if r.Rank != quorum.Gone {
			tell(r.Inc.Replica)
		}
	}
	tell(x.me)
	return out
}

// in records the prints of an applied answer; before and seen are the vectors before it and now. If
// an origin rose without a print, its print is forgotten.
func (x *prints) in(h head, before, seen causal.Vector, ps peers) {
	for d := range h.head.Beyond(before) {
		p, told := h.prints[d.Replica]
		switch {
		case !told:
			delete(x.heard, d.Replica)
		case d.Replica != x.me && d.N == seen.Get(d.Replica):
			x.keep(d.Replica, heardPrint{d.N, p}, ps)
		}
	}
}

// keep stores the print of an origin. If there are too many origins, it drops some of those that
// are not in view.
func (x *prints) keep(r causal.Replica, h heardPrint, ps peers) {
	x.heard[r] = h
	if len(x.heard) <= 2*keepOrigins+len(ps) {
		return
	}
	var gone []causal.Replica
	for o := range x.heard {
		if ps.at(o) == nil {
			gone = append(gone, o)
		}
	}
	slices.Sort(gone)
	for _, o := range gone[:max(0, len(gone)-keepOrigins)] {
		delete(x.heard, o)
	}
}

// sameHistory reports whether a push continues or repeats the events that this replica has of its
// origin, as far as is known. If not, one of the two histories is that of a restored snapshot, and
// sameHistory notifies the origin.
func (c *Core) sameHistory(d *delta) bool {
	if c.prints.same(d, c.seen) {
		return true
	}
	c.stats.Forks++
	if p := c.peers.at(d.origin); p != nil {
		c.sendAck(p)
	}
	return false
}

// sendAck acknowledges the events of p that this replica covers.
func (c *Core) sendAck(p *peer) {
	c.send(p, wire.ReplicatorAck, encodeAck(c.seen.Get(p.replica), c.counts(), c.roll.Digest(),
		c.prints.of(p.replica, c.seen)))
}

// origins are the prints that an answer carries, by replica: of the events in its head.
type origins map[causal.Replica]imprint

// ranked returns the prints together with the ranks of their origins in a vector.
func (o origins) ranked(v causal.Vector) (at []uint64, prints []imprint) {
	for _, r := range slices.Sorted(maps.Keys(o)) {
		if i, n := v.Rank(r); n > 0 {
			at, prints = append(at, uint64(i)), append(prints, o[r])
		}
	}
	return at, prints
}

// originsOf decodes prints with the ranks of their origins in a vector.
func originsOf(v causal.Vector, at []uint64, prints []imprint) (origins, error) {
	if len(at) != len(prints) {
		return nil, malformed("%d prints of %d replicas", len(prints), len(at))
	}
	out := origins{}
	for i, x := range at {
		if x >= uint64(v.Len()) {
			return nil, malformed("a print of replica %d of %d", x, v.Len())
		}
		out[v.At(int(x)).Replica] = prints[i]
	}
	return out, nil
}

// confirmBeat is confirm for a heartbeat. A heartbeat meant for another replica of this member says
// nothing about this one's events: its sender may have them from before a snapshot.
func (c *Core) confirmBeat(p *peer, n, x uint64, counts bool) bool {
	if x == 0 || x>>32 != uint64(c.me)&(1<<32-1) {
		return true
	}
	return c.confirm(p, n, imprint(x), counts)
}

// confirm records that p covers own events up to n, the last of them with the print x. counts says
// that p speaks as a member that counts. It returns false if that event is not this replica's: then
// both come from one snapshot of a machine [R4].
func (c *Core) confirm(p *peer, n uint64, x imprint, counts bool) bool {
	if n > c.seen.Get(c.me) || contradict(c.prints.own.at(n), x) {
		c.restored = true
		return false
	}
	if counts {
		p.vouches, p.counted = true, max(p.counted, n)
		c.waits.Stir()
	}
	if n > p.acked {
		c.waits.Stir()
		p.acknowledged(n)
		c.copied = max(c.copied, n)
	}
	return true
}
