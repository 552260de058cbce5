package core

import (
	"iter"
	"maps"
	"slices"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// An imprint, or print, is a hash of the effects of an origin's events up to a number, chained from
// event to event [R57]. Equal prints mean that a number names the same event on both sides. 0
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

// common returns the last event up to own that a replica with the prints its shares. That replica
// is known to have the events up to known.
func (o *ownPrints) common(known, own uint64, its heardPrints) uint64 {
	common := known
	for at, x := range its.all() {
		switch {
		case at > own:
		case contradict(o.at(at), x): // all events after it differ too
			return min(common, at-1)
		case at > common && agree(x, o.at(at)):
			common = at
		}
	}
	return common
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

// heardPrints are prints of another origin's events. The last one is that of the events up to n.
type heardPrints struct {
	n    uint64
	last []imprint
}

// Bounds on the prints kept of other origins: the number of prints per origin, and the number of
// origins that are not in view.
const (
	keepPrints  = 32
	keepOrigins = 1024
)

// at returns the print of the events up to n, or 0.
func (h heardPrints) at(n uint64) imprint {
	if i := h.n - n; n <= h.n && i < uint64(len(h.last)) {
		return h.last[uint64(len(h.last))-1-i]
	}
	return 0
}

// all yields the prints with their numbers.
func (h heardPrints) all() iter.Seq2[uint64, imprint] {
	return func(yield func(uint64, imprint) bool) {
		for i, x := range h.last {
			if !yield(h.n-uint64(len(h.last)-1-i), x) {
				return
			}
		}
	}
}

// contradict reports whether two prints of one number are both known and differ.
func contradict(a, b imprint) bool { return a != 0 && b != 0 && a != b }

// agree reports whether two prints of one number are known and equal.
func agree(a, b imprint) bool { return a != 0 && a == b }

// printOf returns the print of the events of an origin that this replica has applied.
func (c *Core) printOf(r causal.Replica) imprint {
	n := c.seen.Get(r)
	if r == c.me {
		return c.prints.at(n)
	}
	return c.heardOf[r].at(n)
}

// sameHistory reports whether a push continues or repeats the events that this replica has of its
// origin, as far as is known. If not, one of the two histories is that of a restored snapshot, and
// sameHistory notifies the origin.
func (c *Core) sameHistory(d *delta) bool {
	x := min(c.seen.Get(d.origin), d.head.Get(d.origin))
	from := d.base.Get(d.origin)
	if x < from || x-from >= uint64(len(d.prints)) {
		return true
	}
	if !contradict(c.heardOf[d.origin].at(x), d.prints[x-from]) {
		return true
	}
	c.stats.Forks++
	if p := c.peerOf(d.origin); p != nil {
		c.sendAck(p, c.heardOf[d.origin].last)
	}
	return false
}

// sendAck acknowledges the events of p that this replica covers.
func (c *Core) sendAck(p *peer, prints []imprint) {
	c.send(p, wire.ReplicatorAck, encodeAck(c.seen.Get(p.replica), c.counts(), c.roll.digest,
		prints))
}

// ack returns the print for an acknowledgement, if it is known.
func (c *Core) ack(p *peer) []imprint {
	if x := c.printOf(p.replica); x != 0 {
		return []imprint{x}
	}
	return nil
}

// learnPrints records the prints of an applied push.
func (c *Core) learnPrints(d *delta) {
	n := d.head.Get(d.origin)
	h := c.heardOf[d.origin]
	if len(d.prints) == 0 || h.n > n {
		return
	}
	fresh := d.prints[1:]
	if from := d.base.Get(d.origin); h.n >= from && h.n-from < uint64(len(d.prints)) {
		fresh = d.prints[h.n-from+1:]
	} else {
		h.last = nil
	}
	h.last = append(h.last, fresh...)
	if len(h.last) > 2*keepPrints {
		h.last = slices.Clone(h.last[len(h.last)-keepPrints:])
	}
	h.n = n
	c.keepPrints(d.origin, h)
}

// origins are the prints that a request or an answer carries, by replica: the last prints of the
// events that its sender has of that replica.
type origins map[causal.Replica][]imprint

// last returns the last print of a replica, or 0.
func (o origins) last(r causal.Replica) imprint {
	if x := o[r]; len(x) > 0 {
		return x[len(x)-1]
	}
	return 0
}

// ranked returns the prints together with the ranks of their origins in a vector, and the number of
// prints of each origin.
func (o origins) ranked(v causal.Vector) (at, counts []uint64, prints []imprint) {
	for _, r := range slices.Sorted(maps.Keys(o)) {
		if i, n := v.Rank(r); n > 0 {
			at, counts, prints = append(at, uint64(i)), append(counts, uint64(len(o[r]))),
				append(prints, o[r]...)
		}
	}
	return at, counts, prints
}

// originsOf decodes prints with the ranks of their origins in a vector. Without counts there is one
// print per origin.
func originsOf(v causal.Vector, at, counts []uint64, prints []imprint) (origins, error) {
	if len(counts) == 0 && len(at) != len(prints) || len(counts) > 0 && len(counts) != len(at) {
		return nil, malformed("%d prints of %d replicas", len(prints), len(at))
	}
	out := origins{}
	for i, x := range at {
		n := uint64(1)
		if len(counts) > 0 {
			n = counts[i]
		}
		if x >= uint64(v.Len()) || n > uint64(len(prints)) {
			return nil, malformed("%d prints of replica %d of %d", n, x, v.Len())
		}
		out[v.At(int(x)).Replica] = prints[:n:n]
		prints = prints[n:]
	}
	return out, nil
}

// printsOut returns the prints of the events that this replica has applied of: the members that it
// sees or remembers, or saw until recently; the replicas with retracted events; and itself. The
// prints of an origin start at the last event that have covers, as far as they are known. The
// receiver may see more members than this replica does; without a print it would have to trust a
// vector alone that this replica has what the origin did.
func (c *Core) printsOut(have causal.Vector) origins {
	out := origins{}
	tell := func(r causal.Replica) {
		if _, told := out[r]; told {
			return
		}
		n := c.seen.Get(r)
		from := max(min(have.Get(r), n), n-min(n, keepPrints)+1)
		var run []imprint
		for i := n; i >= from && c.printAt(r, i) != 0; i-- {
			run = append(run, c.printAt(r, i))
		}
		if len(run) > 0 {
			slices.Reverse(run)
			out[r] = run
		}
	}
	for _, p := range c.peers {
		tell(p.replica)
	}
	for _, r := range c.roll.all {
		if r.rank != gone {
			tell(r.inc.replica)
		}
	}
	for _, r := range c.retracted {
		tell(r.replica)
	}
	for _, f := range c.formers {
		tell(f.replica)
	}
	tell(c.me)
	return out
}

// printsIn records the prints of an applied answer; before is the vector before it. If an origin
// rose without a print, its prints are forgotten.
func (c *Core) printsIn(h head, before causal.Vector) {
	for d := range h.head.Beyond(before) {
		if _, told := h.prints[d.Replica]; !told {
			delete(c.heardOf, d.Replica)
		}
	}
	for r, run := range h.prints {
		if n := h.head.Get(r); r != c.me && n == c.seen.Get(r) && n > before.Get(r) {
			c.keepPrints(r, c.heardOf[r].then(n, run))
		}
	}
}

// then returns h extended by run, the prints of the events up to n.
func (h heardPrints) then(n uint64, run []imprint) heardPrints {
	first := n - uint64(len(run)-1)
	if h.n < n && h.n+1 >= first && len(h.last) > 0 {
		run = slices.Concat(h.last, run[h.n+1-first:])
	}
	return heardPrints{n, slices.Clone(run[max(0, len(run)-2*keepPrints):])}
}

// keepPrints stores the prints of an origin. If there are too many origins, it drops some of those
// that are not in view.
func (c *Core) keepPrints(r causal.Replica, h heardPrints) {
	c.heardOf[r] = h
	if len(c.heardOf) <= 2*keepOrigins+len(c.peers) {
		return
	}
	var gone []causal.Replica
	for o := range c.heardOf {
		if c.peerOf(o) == nil {
			gone = append(gone, o)
		}
	}
	slices.Sort(gone)
	for _, o := range gone[:max(0, len(gone)-keepOrigins)] {
		delete(c.heardOf, o)
	}
}

// confirmBeat is confirm for a heartbeat. A heartbeat meant for another replica of this member says
// nothing about this one's events: its sender may have them from before a snapshot.
func (c *Core) confirmBeat(p *peer, n, x uint64, counts bool) bool {
	if x == 0 || x>>32 != uint64(c.me)&(1<<32-1) {
		return true
	}
	return c.confirm(p, n, []imprint{imprint(x)}, counts)
}

// confirm records that p covers own events up to n, the last of them with these prints. counts says
// that p speaks as a member that counts. An event with a different print is not this replica's:
// both come from one snapshot of a machine [R57].
func (c *Core) confirm(p *peer, n uint64, prints []imprint, counts bool) bool {
	if its := (heardPrints{n, prints}); c.foreign(its) {
		c.reborn(p.ID, p.acked, its)
		return false
	}
	if counts {
		p.vouches, p.counted, c.stirred = true, max(p.counted, n), true
	}
	if n > p.acked {
		c.stirred = true
		p.acknowledged(n)
		c.copied = max(c.copied, n)
	}
	return true
}

// foreign reports whether the last of these events, which another member has under own numbers,
// differs from this replica's.
func (c *Core) foreign(its heardPrints) bool {
	return its.n > c.seen.Get(c.me) || contradict(c.prints.at(its.n), its.at(its.n))
}

// disputed handles a report about member: under own numbers it has other events than the reporting
// peer, which has those of this replica. That member may not be in view, or may not see this one.
func (c *Core) disputed(member string, its heardPrints) {
	if len(its.last) == 0 || !c.foreign(its) {
		return
	}
	acked := uint64(0)
	if o := c.peer(member); o != nil {
		acked = o.acked
	}
	c.stats.Forks++
	c.reborn(member, acked, its)
}
