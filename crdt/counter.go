package crdt

import (
	"math"
	"math/bits"

	"github.com/concord-go/concord/internal/causal"
)

// GCounter is a counter that only grows. Every increment counts exactly once, whatever is
// concurrent with it. Only a reset ([GCounter.Reset], removing the counter from its map, or
// deleting its key) lowers the count, and it removes exactly the increments it has seen. The zero
// value is 0. Copies are snapshots.
//
// A GCounter costs about 40 bytes for each replica that incremented it, for as long as the counter
// exists. Replicas are incarnations, so a restarted program takes another slot. A reset leaves a
// mark of about 60 bytes in the slot of each other replica. A replicator drops the mark when no
// member can need it any longer; a value used alone keeps it.
//
// Use [PNCounter] to count down as well, and [LWWRegister] for a number that is set rather than
// counted.
type GCounter struct{ view }

func (c *GCounter) tag() causal.Tag { return causal.MakeTag(causal.GCounter, causal.Custom) }

// Add adds n. If the counter would exceed 2^64-1, the update fails with [ErrOverflow].
func (c *GCounter) Add(w *Writer, n uint64) {
	if n == 0 || !c.open(w) {
		return
	}
	s := c.sum(c.tag())
	if s.plus.add(n); s.plus.hi != 0 {
		w.Fail(ErrOverflow)
		return
	}
	c.count(w, c.tag(), n, 0)
}

// Reset removes every increment it has seen. Concurrent increments survive.
func (c *GCounter) Reset(w *Writer) { c.reset(w, c.tag()) }

// Value returns the count. If concurrent additions together exceed 2^64-1, it returns 2^64-1.
func (c GCounter) Value() uint64 {
	s := c.sum(c.tag())
	if s.plus.hi != 0 {
		return math.MaxUint64
	}
	return s.plus.lo
}

// Merge returns the join of two states of the counter.
func (c GCounter) Merge(o GCounter) GCounter { return GCounter{c.merge(&o.view)} }

// Decode returns the counter encoded by AppendBinary.
func (c GCounter) Decode(src []byte) (GCounter, error) {
	v, err := decodeView(src, c.tag())
	if err != nil {
		return c, err
	}
	return GCounter{v}, nil
}

// PNCounter is a counter that counts up and down. Every addition counts exactly once, whatever is
// concurrent with it. Only a reset removes additions, and exactly those it has seen. See
// [GCounter] for resets and cost. The zero value is 0. Copies are snapshots.
//
// A PNCounter cannot enforce a bound: two replicas that both take the last one leave -1.
type PNCounter struct{ view }

func (c *PNCounter) tag() causal.Tag { return causal.MakeTag(causal.PNCounter, causal.Custom) }

// Add adds n, which may be negative. The update fails with [ErrOverflow] if the counter would leave
// the range of int64, or if the additions of w's replica that no reset has removed would exceed
// 2^64-1 in one direction. If concurrent additions have taken the counter out of the range, an
// addition that brings it nearer succeeds.
func (c *PNCounter) Add(w *Writer, n int64) {
	if n == 0 || !c.open(w) {
		return
	}
	plus, minus := uint64(n), uint64(0)
	if n < 0 {
		plus, minus = 0, -uint64(n)
	}
	s := c.sum(c.tag())
	end, in := s.net()
	s.plus.add(plus)
	s.minus.add(minus)
	if _, ok := s.net(); !ok && (in || (end > 0) == (n > 0)) {
		w.Fail(ErrOverflow)
		return
	}
	c.count(w, c.tag(), plus, minus)
}

// Reset removes every addition it has seen. Concurrent additions survive.
func (c *PNCounter) Reset(w *Writer) { c.reset(w, c.tag()) }

// Value returns the count. If concurrent additions together leave the range of int64, it returns
// the nearest end of that range.
func (c PNCounter) Value() int64 {
	n, _ := c.sum(c.tag()).net()
	return n
}

// Merge returns the join of two states of the counter.
func (c PNCounter) Merge(o PNCounter) PNCounter { return PNCounter{c.merge(&o.view)} }

// Decode returns the counter encoded by AppendBinary.
func (c PNCounter) Decode(src []byte) (PNCounter, error) {
	v, err := decodeView(src, c.tag())
	if err != nil {
		return c, err
	}
	return PNCounter{v}, nil
}

// count adds to the slot of w's replica. It continues the chain of the live atom if there is one,
// so that a concurrent reset can record how much of the chain it had seen; otherwise it begins a
// chain.
func (v *view) count(w *Writer, tag causal.Tag, plus, minus uint64) {
	var buf [64]byte
	v.countAt(w, causal.SlotPath(string(v.base(buf[:0], tag)), w.dot.Replica), plus, minus)
}

// countAt is count for any slot of w's replica.
func (v *view) countAt(w *Writer, path string, plus, minus uint64) {
	t := causal.Total{Since: w.dot.N}
	var hadPlus, hadMinus uint64 // what the slot contributes
	if e, ok := v.store.Get(path); ok {
		if own, ok := e.Of(w.dot.Replica); ok {
			var err error
			if t, err = causal.ParseTotal(own.Payload); err != nil {
				w.Fail(ErrMalformed)
				return
			}
			hadPlus, hadMinus = v.store.Contribution(path, own)
		}
	}
	_, overPlus := bits.Add64(hadPlus, plus, 0)
	_, overMinus := bits.Add64(hadMinus, minus, 0)
	if overPlus|overMinus != 0 {
		w.Fail(ErrOverflow)
		return
	}
	t.Plus, t.Minus = t.Plus+plus, t.Minus+minus // modulo 2^64, see causal.Store.Contribution
	next, err := put(w, v.store, []byte(path), causal.Leaf{Dot: w.dot, Payload: t.Payload()})
	if err != nil {
		w.Fail(err)
		return
	}
	v.set(w, next)
}

func (v *view) reset(w *Writer, tag causal.Tag) {
	if v.open(w) {
		v.set(w, v.store.ResetPrefix(string(v.base(nil, tag)), w.dot))
	}
}

// sum returns the sum of the contributions of all slots.
func (v *view) sum(tag causal.Tag) (s sums) {
	var buf [64]byte
	for path, e := range v.store.Prefix(string(v.base(buf[:0], tag))) {
		for l := range e.All() {
			plus, minus := v.store.Contribution(path, l)
			s.plus.add(plus)
			s.minus.add(minus)
		}
	}
	return s
}

// sums holds the gross totals of a counter.
type sums struct{ plus, minus wide }

// wide is a 128-bit number, which no sum over slots can overflow.
type wide struct{ hi, lo uint64 }

func (n *wide) add(m uint64) {
	var carry uint64
	n.lo, carry = bits.Add64(n.lo, m, 0)
	n.hi += carry
}

// net returns the difference and true, or the nearest end of the range of int64 and false.
func (s sums) net() (int64, bool) {
	lo, borrow := bits.Sub64(s.plus.lo, s.minus.lo, 0)
	hi, _ := bits.Sub64(s.plus.hi, s.minus.hi, borrow)
	n := int64(lo)
	switch {
	case hi == 0 && n >= 0, hi == math.MaxUint64 && n < 0:
		return n, true
	case int64(hi) < 0:
		return math.MinInt64, false
	}
	return math.MaxInt64, false
}
