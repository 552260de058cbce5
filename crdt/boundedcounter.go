package crdt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/concord-go/concord/internal/causal"
)

// BoundedCounter is a counter that never falls below zero, although no replica asks another before
// it counts down. Use it for seats, stock and quotas. Adding n gives the replica the right to
// subtract n later, on its own, at any time. Subtracting spends rights, and
// [BoundedCounter.Transfer] gives them to another replica. A replica that holds too few rights gets
// [ErrBounds], even if other replicas hold enough. A refusal therefore means "not here, not now",
// and Value may be larger than what any single replica can take. Every change counts exactly once,
// whatever is concurrent with it. The zero value is 0. Copies are snapshots.
//
// Rights belong to a replica, and a restarted program is a new replica: the rights it held before
// stay with its old id forever. Transfer them before a clean stop, and keep no more in one place
// than you can afford to lose.
//
// A reset (removing the counter from its map, or deleting its key) is not bounded. It removes
// exactly the changes it has seen. If it is concurrent with a Sub, the count may be below zero
// afterwards, until as much is added again.
//
// A BoundedCounter costs about 50 bytes for each replica that counted and for each pair of replicas
// between which rights were transferred. Resets leave marks as in [GCounter].
//
// Use [PNCounter] if a count below zero does no harm, and a lease if one holder at a time is
// enough.
type BoundedCounter struct{ view }

func (c *BoundedCounter) tag() causal.Tag { return causal.MakeTag(causal.Bounded, causal.Custom) }

// slot returns the path of the slot for rights transferred between the two replicas, or for the
// replica's own changes if both are the same.
func (c *BoundedCounter) slot(from, to causal.Replica) string {
	var buf [64]byte
	return causal.SlotPath(causal.SlotPath(string(c.base(buf[:0], c.tag())), from), to)
}

// Add adds n and gives w's replica the right to subtract n. If the counter would exceed 2^63-1, the
// update fails with [ErrOverflow].
func (c *BoundedCounter) Add(w *Writer, n uint64) {
	if n == 0 || !c.open(w) {
		return
	}
	s := c.total()
	s.plus.add(n)
	if _, ok := s.net(); !ok {
		w.Fail(ErrOverflow)
		return
	}
	c.countAt(w, c.slot(w.dot.Replica, w.dot.Replica), n, 0)
}

// Sub subtracts n. If w's replica holds fewer than n rights, the update fails with [ErrBounds].
func (c *BoundedCounter) Sub(w *Writer, n uint64) {
	if n == 0 || !c.open(w) || !c.holds(w, n) {
		return
	}
	c.countAt(w, c.slot(w.dot.Replica, w.dot.Replica), 0, n)
}

// Transfer gives n of the rights that w's replica holds to another replica, which holds them as
// soon as it has received the change. If w's replica holds fewer than n, the update fails with
// [ErrBounds].
func (c *BoundedCounter) Transfer(w *Writer, to ReplicaID, n uint64) {
	if n == 0 || !c.open(w) || !c.holds(w, n) {
		return
	}
	switch to {
	case w.Replica():
		return // it holds them already
	case 0:
		w.Fail(fmt.Errorf("%w: transfer to replica 0", ErrBounds))
		return
	}
	c.countAt(w, c.slot(w.dot.Replica, causal.Replica(to)), n, 0)
}

func (c *BoundedCounter) holds(w *Writer, n uint64) bool {
	have := c.Rights(w.Replica())
	if n > have {
		w.Fail(fmt.Errorf("%w: %d wanted, %d held", ErrBounds, n, have))
	}
	return n <= have
}

// Rights returns how much the replica can subtract. The result is exact for the local replica;
// another replica may hold more or less by now.
func (c BoundedCounter) Rights(of ReplicaID) uint64 {
	var s sums
	c.each(func(from, to ReplicaID, plus, minus uint64) {
		switch {
		case from == of && to == of:
			s.plus.add(plus)
			s.minus.add(minus)
		case to == of:
			s.plus.add(plus)
		case from == of:
			s.minus.add(plus)
		}
	})
	n, _ := s.net()
	return uint64(max(n, 0))
}

// Value returns the count. It is below zero only after a reset; see [BoundedCounter].
func (c BoundedCounter) Value() int64 {
	n, _ := c.total().net()
	return n
}

func (c *BoundedCounter) total() (s sums) {
	c.each(func(from, to ReplicaID, plus, minus uint64) {
		if from == to {
			s.plus.add(plus)
			s.minus.add(minus)
		}
	})
	return s
}

// each calls f for each slot with the slot's contribution.
func (c *BoundedCounter) each(f func(from, to ReplicaID, plus, minus uint64)) {
	base := string(c.base(nil, c.tag()))
	for path, e := range c.store.Prefix(base) {
		slot := path[len(base):]
		if len(slot) != 16 {
			continue
		}
		from, to := binary.BigEndian.Uint64([]byte(slot[:8])),
			binary.BigEndian.Uint64([]byte(slot[8:]))
		for l := range e.All() {
			plus, minus := c.store.Contribution(path, l)
			f(ReplicaID(from), ReplicaID(to), plus, minus)
		}
	}
}

// Merge returns the join of two states of the counter.
func (c BoundedCounter) Merge(o BoundedCounter) BoundedCounter {
	return BoundedCounter{c.merge(&o.view)}
}

// Decode returns the counter encoded by AppendBinary.
func (c BoundedCounter) Decode(src []byte) (BoundedCounter, error) {
	v, err := decodeView(src, c.tag())
	if err != nil {
		return c, err
	}
	return BoundedCounter{v}, nil
}

// String returns the count.
func (c BoundedCounter) String() string { return strconv.FormatInt(c.Value(), 10) }

// MarshalJSON returns the count as a number.
func (c BoundedCounter) MarshalJSON() ([]byte, error) { return json.Marshal(c.Value()) }
