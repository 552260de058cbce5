package crdt

import (
	"iter"
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// MVRegister holds the last element written, or all of them if several were written concurrently.
// Nothing is silently lost; the reader decides. A write replaces only the elements it has seen. The
// zero value is empty, for elements with a natural encoding; see [NewMVRegister] for others. Copies
// are snapshots.
//
// An MVRegister costs the encoded element and about 60 bytes for each concurrent write, at most one
// per replica; the next write that has seen them removes them. There are no tombstones.
//
// Use [LWWRegister] if a clock may decide.
type MVRegister[E any] struct {
	view
	elem elem[E]
}

// NewMVRegister returns an empty register whose elements use the codec.
func NewMVRegister[E any](c Codec[E]) MVRegister[E] { return MVRegister[E]{elem: elem[E]{c}} }

func (r *MVRegister[E]) tag() causal.Tag {
	return causal.MakeTag(causal.MVRegister, r.elem.class())
}

// Set replaces all elements of the register with e. The update fails if e cannot be encoded.
func (r *MVRegister[E]) Set(w *Writer, e E) {
	if !r.open(w) {
		return
	}
	var buf [64]byte
	b, err := r.elem.append(nil, e)
	next := r.store
	if err == nil {
		next, err = put(w, next, r.base(buf[:0], r.tag()),
			causal.Leaf{Dot: w.dot, Payload: string(b)})
	}
	if err != nil {
		w.Fail(err)
		return
	}
	r.set(w, next)
}

// Clear removes all elements of the register.
func (r *MVRegister[E]) Clear(w *Writer) {
	if r.open(w) {
		r.set(w, drop(w, r.store, r.base(nil, r.tag())))
	}
}

// payloads returns the encoded elements, sorted and without duplicates.
func (r *MVRegister[E]) payloads() (out []string) {
	var buf [64]byte
	at, ok := r.store.Get(string(r.base(buf[:0], r.tag())))
	if !ok {
		return nil
	}
	for l := range at.All() {
		out = append(out, l.Payload)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Values yields the elements in the order of their encoding, without duplicates.
func (r MVRegister[E]) Values() iter.Seq[E] { return r.decoded(r.payloads()) }

func (r *MVRegister[E]) decoded(payloads []string) iter.Seq[E] {
	c := r.elem
	return func(yield func(E) bool) {
		for _, p := range payloads {
			if e, err := c.decode([]byte(p)); err == nil && !yield(e) {
				return
			}
		}
	}
}

// Len returns the number of distinct elements: 0 before the first write, 2 or more after concurrent
// writes.
func (r MVRegister[E]) Len() int { return len(r.payloads()) }

// Value returns the element if the register holds exactly one.
func (r MVRegister[E]) Value() (e E, ok bool) {
	p := r.payloads()
	if len(p) != 1 {
		return e, false
	}
	d, err := r.elem.decode([]byte(p[0]))
	if err != nil {
		return e, false
	}
	return d, true
}

// Diff returns the elements added and removed since old, in order.
func (r MVRegister[E]) Diff(old MVRegister[E]) (added, removed iter.Seq[E]) {
	is, was := r.payloads(), old.payloads()
	only := func(a, b []string) iter.Seq[E] {
		return r.decoded(slices.DeleteFunc(slices.Clone(a), func(p string) bool {
			return slices.Contains(b, p)
		}))
	}
	return only(is, was), only(was, is)
}

// Merge returns the join of two states of the register.
func (r MVRegister[E]) Merge(o MVRegister[E]) MVRegister[E] {
	r.view = r.merge(&o.view)
	return r
}

// Decode returns the register encoded by AppendBinary, with the receiver's codec.
func (r MVRegister[E]) Decode(src []byte) (MVRegister[E], error) {
	v, err := decodeView(src, r.tag())
	if err != nil {
		return r, err
	}
	r.view = v
	return r, nil
}

// String returns the elements in order.
func (r MVRegister[E]) String() string { return text(r.Values()) }

// MarshalJSON returns the elements as an array.
func (r MVRegister[E]) MarshalJSON() ([]byte, error) { return jsonArray(r.Values()) }
