package history

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// EventHash is a hash of the effects of an origin's events up to a number, chained from event to
// event [R4]. Equal hashes mean that a number names the same event on both sides. 0 stands for an
// unknown hash.
type EventHash = uint32

// ownHashes are the hashes of own events: of[i] is that of the events up to from+i.
type ownHashes struct {
	from  uint64
	of    []EventHash
	chain uint64 // the last hash, in full
	room  []EventHash
}

// apart makes the hashes of events that were committed together differ.
const apart = 0x9e3779b97f4a7c15

// maxHashes bounds the hashes that an origin keeps of its own events. Older events are not
// compared.
const maxHashes = 1 << 16

// add computes the hashes of the next events, from first to n, which were committed together, from
// the previous hash, the state after the events, what the replica had seen, and the time. Each of
// them depends on all the events: only together do these have the meaning of their numbers.
func (o *ownHashes) add(first, n uint64, sum Sum, seen causal.Vector, clock uint64) {
	if first != o.from+uint64(len(o.of)) || first == 0 { // the first, or a panic left a gap
		o.from, o.of = first-1, append(o.of[:0:0], 0)
	}
	h := newHash()
	for _, x := range [...]uint64{o.chain, n, sum[0], sum[1], seen.Hash(), clock} {
		h.number(x)
	}
	o.chain = h.Sum64()
	for i := first; i <= n; i++ {
		o.of = append(o.of, EventHash(o.chain+(n-i)*apart)|1)
	}
	if len(o.of) > 2*maxHashes {
		o.from += uint64(len(o.of) - maxHashes)
		o.of = slices.Clone(o.of[len(o.of)-maxHashes:])
	}
}

// at returns the hash of the events up to n, or 0.
func (o *ownHashes) at(n uint64) EventHash {
	if n < o.from || n-o.from >= uint64(len(o.of)) {
		return 0
	}
	return o.of[n-o.from]
}

// behind returns the hash of the events up to n and the hashes of the following count events. The
// result is valid until the next call.
func (o *ownHashes) behind(n uint64, count int) []EventHash {
	o.room = o.room[:0]
	for i := range count + 1 {
		o.room = append(o.room, o.at(n+uint64(i)))
	}
	return o.room
}

// Heard is the hash of another origin's events up to N.
type Heard struct {
	N    uint64
	Hash EventHash
}

// at returns the hash of the events up to n, or 0.
func (x Heard) at(n uint64) EventHash {
	if x.N == n {
		return x.Hash
	}
	return 0
}

// contradict reports whether two hashes of one number are both known and differ.
func contradict(a, b EventHash) bool { return a != 0 && b != 0 && a != b }

// hashes are those of all origins, as far as they are known.
type hashes struct {
	own   ownHashes
	heard map[causal.Replica]Heard
}

func newHashes() hashes { return hashes{heard: map[causal.Replica]Heard{}} }

// keepOrigins bounds the origins that do not run and whose hashes are kept.
const keepOrigins = 1024

// retire drops the hashes of some of the origins that are gone, if there are too many.
func (x *hashes) retire(gone func(causal.Replica) bool) {
	if len(x.heard) <= 2*keepOrigins {
		return
	}
	drop := slices.Sorted(maps.Keys(x.heard))
	drop = slices.DeleteFunc(drop, func(r causal.Replica) bool { return !gone(r) })
	for _, r := range drop[:max(0, len(drop)-keepOrigins)] {
		delete(x.heard, r)
	}
}

// HashAt returns the hash of the events of a replica up to n, or 0.
func (h *History) HashAt(r causal.Replica, n uint64) EventHash {
	if r == h.me {
		return h.hashes.own.at(n)
	}
	return h.hashes.heard[r].at(n)
}

// HashOf returns the hash of the events of an origin that this replica has applied, or 0.
func (h *History) HashOf(r causal.Replica) EventHash { return h.HashAt(r, h.seen.Get(r)) }

// OwnHashes returns the hash of the own events up to n and the hashes of the following count
// events. The result is valid until the next call.
func (h *History) OwnHashes(n uint64, count int) []EventHash {
	return h.hashes.own.behind(n, count)
}

// Owns reports whether the own events up to n are here, and those that another replica knows by the
// hash x, which may be 0.
func (h *History) Owns(n uint64, x EventHash) bool {
	return n <= h.Own() && !contradict(h.hashes.own.at(n), x)
}

// Continues reports whether a push continues or repeats the events that this replica has of its
// origin, as far as is known.
func (h *History) Continues(d *Delta) bool {
	n, from := min(h.seen.Get(d.Origin), d.Head.Get(d.Origin)), d.Base.Get(d.Origin)
	if n < from || n-from >= uint64(len(d.Hashes)) {
		return true
	}
	return !contradict(h.hashes.heard[d.Origin].at(n), d.Hashes[n-from])
}

// ApplyPush applies a push and keeps the hash of its last event.
func (h *History) ApplyPush(d *Delta) Change {
	ch := h.Apply(d)
	n := d.Head.Get(d.Origin)
	if len(d.Hashes) > 0 && h.hashes.heard[d.Origin].N <= n {
		h.hashes.heard[d.Origin] = Heard{n, d.Hashes[len(d.Hashes)-1]}
	}
	return ch
}

// TakeHashes keeps the hashes that came with an applied answer, of the events of its head; before
// is the vector before it. If an origin rose without a hash, its hash is forgotten.
func (h *History) TakeHashes(head, before causal.Vector, of map[causal.Replica]EventHash) {
	for d := range head.Beyond(before) {
		x, told := of[d.Replica]
		switch {
		case !told:
			delete(h.hashes.heard, d.Replica)
		case d.Replica != h.me && d.N == h.seen.Get(d.Replica):
			h.hashes.heard[d.Replica] = Heard{d.N, x}
		}
	}
}

// Load joins the state that this replica's disk holds, with the hashes of the events of its
// origins.
func (h *History) Load(s State, of map[causal.Replica]Heard) Change {
	if of != nil {
		h.hashes.heard = of
	}
	return h.Join(s)
}
