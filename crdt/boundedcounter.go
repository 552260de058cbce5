package crdt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/concord-go/concord/internal/causal"
)

// BoundedCounter is a counter that never falls below zero, though no replica asks another before it
// counts down: seats, stock, quotas. Counting up gives the replica the right to count as much down
// again, on its own, at any time. Rights are spent by counting down, and given to another replica by
// [BoundedCounter.Transfer]; a replica without enough of them is refused with [ErrBounds], although
// others may hold some. So a refusal means "not here, now", and Value may be larger than what any one
// replica can take. Every change counts, once, whatever is concurrent with it. The zero value is 0.
// Copies are snapshots.
//
// Rights belong to a replica, and a restarted program is another one: what it held before is left
// with its old id for ever. Transfer it before a clean stop, and keep no more in one place than you can
// afford to lose.
//
// A reset (removing the counter from the map it lies in, or deleting its key) is not bounded: it takes
// away exactly what it has seen, and where it is concurrent with a Sub the count may be below zero
// afterwards, until as much is added.
//
// It costs about 50 bytes for each replica that counted and for each pair of replicas of which one gave
// the other rights. Resets leave marks as in [GCounter].
//
// Take [PNCounter] when a count below zero is no harm, and a lease when one holder at a time is enough.
type BoundedCounter struct{ view }

func (c *BoundedCounter) tag() causal.Tag { return causal.MakeTag(causal.Bounded, causal.Custom) }

// slot is the path of what one replica gave another, or of what it counted itself.
func (c *BoundedCounter) slot(from, to causal.Replica) string {
	var buf [64]byte
	return causal.SlotPath(causal.SlotPath(string(c.base(buf[:0], c.tag())), from), to)
}

// Add counts n up, and gives w's replica the right to count n down. A counter that would pass 2^63-1
// refuses the update with [ErrOverflow].
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

// Sub counts n down, which w's replica must hold the rights for; otherwise it refuses the update with
// [ErrBounds].
func (c *BoundedCounter) Sub(w *Writer, n uint64) {
	if n == 0 || !c.open(w) || !c.holds(w, n) {
		return
	}
	c.countAt(w, c.slot(w.dot.Replica, w.dot.Replica), 0, n)
}

// Transfer gives n of the rights that w's replica holds to another replica, which holds them as soon as
// the change has reached it. With fewer at hand it refuses the update with [ErrBounds].
func (c *BoundedCounter) Transfer(w *Writer, to ReplicaID, n uint64) {
	if n == 0 || to == w.Replica() || !c.open(w) || !c.holds(w, n) {
		return
	}
	if to == 0 {
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

// Rights returns how much the replica can count down. Of another replica it may hold more or less by
// now; of the own it is exact.
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

// each calls f for each slot with what it contributes.
func (c *BoundedCounter) each(f func(from, to ReplicaID, plus, minus uint64)) {
	base := string(c.base(nil, c.tag()))
	for path, e := range c.store.Prefix(base) {
		slot := path[len(base):]
		if len(slot) != 16 {
			continue
		}
		from, to := binary.BigEndian.Uint64([]byte(slot[:8])), binary.BigEndian.Uint64([]byte(slot[8:]))
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

// AppendBinary appends the canonical encoding: equal states have equal bytes.
func (c BoundedCounter) AppendBinary(dst []byte) ([]byte, error) { return c.appendBinary(dst) }

// Decode returns the counter that AppendBinary wrote.
func (c BoundedCounter) Decode(src []byte) (BoundedCounter, error) {
	v, err := decodeView(src, c.tag())
	if err != nil {
		return c, err
	}
	return BoundedCounter{v}, nil
}

// String returns the count.
func (c BoundedCounter) String() string { return strconv.FormatInt(c.Value(), 10) }

// LogValue returns type and size.
func (c BoundedCounter) LogValue() slog.Value { return c.logValue(c.tag()) }

// MarshalJSON returns the count as a number.
func (c BoundedCounter) MarshalJSON() ([]byte, error) { return json.Marshal(c.Value()) }
