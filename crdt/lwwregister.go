package crdt

import (
	"encoding/binary"
	"math"

	"github.com/concord-go/concord/internal/causal"
)

// LWWRegister holds one element, the last one written. Among concurrent writes the one with the
// largest stamp wins; if stamps are equal, the largest replica id wins. The other writes are
// silently lost. The stamp is the writer's hybrid logical time, so among replicas with accurate
// clocks the later write wins. A new stamp is always above the stamps that the writer saw in this
// register, so a write wins over everything it has seen even if clocks are wrong. One bad stamp
// does not spread to other registers. The zero value is empty. Copies are snapshots.
//
// An LWWRegister costs the encoded element and about 60 bytes, and as much again for each write
// that is concurrent with the last; the next write that has seen them removes them. There are no
// tombstones.
//
// Use another type if no concurrent change may be lost: [PNCounter] for numbers that are counted,
// [ORSet] for elements that are added and removed, [ORMap] for records whose fields change
// independently.
type LWWRegister[E any] struct {
	view
	elem elem[E]
}

// NewLWWRegister returns an empty register whose element uses the codec.
func NewLWWRegister[E any](c Codec[E]) LWWRegister[E] { return LWWRegister[E]{elem: elem[E]{c}} }

func (r *LWWRegister[E]) tag() causal.Tag {
	return causal.MakeTag(causal.LWWRegister, r.elem.class())
}

func (r *LWWRegister[E]) path() string {
	var buf [96]byte
	return string(r.base(buf[:0], r.tag()))
}

// Set writes e. The update fails if e cannot be encoded.
func (r *LWWRegister[E]) Set(w *Writer, e E) {
	if !r.open(w) {
		return
	}
	stamp := w.stamp
	if last, ok := r.last(); ok {
		stamp = max(stamp, saturate(stampOf(last)))
	}
	r.write(w, e, stamp)
}

// SetAt writes e with the given stamp, for example the version of a row in a database. It returns
// false and changes nothing if the register holds a write that wins over it. Do not mix SetAt with
// other writes to the same register.
func (r *LWWRegister[E]) SetAt(w *Writer, e E, stamp uint64) bool {
	if !r.open(w) {
		return false
	}
	if last, ok := r.last(); ok {
		if have := stampOf(last); have > stamp || have == stamp && last.Replica > w.dot.Replica {
			return false
		}
	}
	return r.write(w, e, stamp)
}

// SetFirst writes e unless the register holds an element, and reports whether it did: the first
// write wins. Among concurrent first writes the one with the earliest clock wins; if clocks are
// equal, the largest replica id wins. Do not mix SetFirst with other writes to the same register:
// its stamps run backwards.
func (r *LWWRegister[E]) SetFirst(w *Writer, e E) bool {
	if !r.open(w) {
		return false
	}
	if _, ok := r.last(); ok {
		return false
	}
	return r.write(w, e, ^w.stamp)
}

// write replaces all atoms seen, so only concurrent writes remain to be compared.
func (r *LWWRegister[E]) write(w *Writer, e E, stamp uint64) bool {
	var buf, at [64]byte
	b, err := r.elem.append(binary.BigEndian.AppendUint64(buf[:0], stamp), e)
	next := r.store
	if err == nil {
		next, err = put(w, next, r.base(at[:0], r.tag()),
			causal.Leaf{Dot: w.dot, Payload: string(b)})
	}
	if err != nil {
		w.Fail(err)
		return false
	}
	r.set(w, next)
	return true
}

// last returns the winning atom, and whether there is one.
func (r *LWWRegister[E]) last() (last causal.Leaf, ok bool) {
	e, ok := r.store.Get(r.path())
	if !ok {
		return last, false
	}
	last = e.First()
	for l := range e.All() { // ascending by replica: of equal stamps the last wins
		if stampOf(l) >= stampOf(last) {
			last = l
		}
	}
	return last, true
}

// Value returns the element, and whether one was written.
func (r LWWRegister[E]) Value() (e E, ok bool) {
	last, ok := r.last()
	if !ok || len(last.Payload) < 8 {
		return e, false
	}
	e, err := r.elem.decode([]byte(last.Payload[8:]))
	if err != nil {
		var zero E
		return zero, false
	}
	return e, true
}

// Stamp returns the stamp of the write that Value returns, or 0 if there is none.
func (r LWWRegister[E]) Stamp() uint64 {
	last, ok := r.last()
	if !ok {
		return 0
	}
	return stampOf(last)
}

// Merge returns the join of two states of the register.
func (r LWWRegister[E]) Merge(o LWWRegister[E]) LWWRegister[E] {
	r.view = r.merge(&o.view)
	return r
}

// Decode returns the register encoded by AppendBinary, with the receiver's codec.
func (r LWWRegister[E]) Decode(src []byte) (LWWRegister[E], error) {
	v, err := decodeView(src, r.tag())
	if err != nil {
		return r, err
	}
	r.view = v
	return r, nil
}

// stampOf returns the stamp at the head of a register's payload.
func stampOf(l causal.Leaf) (stamp uint64) {
	for i := range min(8, len(l.Payload)) {
		stamp = stamp<<8 | uint64(l.Payload[i])
	}
	return stamp
}

// saturate returns the next stamp, or the same one at the maximum. A register at the maximum stamp
// can still be written, since a write removes the atoms it has seen.
func saturate(stamp uint64) uint64 {
	if stamp == math.MaxUint64 {
		return stamp
	}
	return stamp + 1
}
