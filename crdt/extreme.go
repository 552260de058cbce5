package crdt

import (
	"encoding/json"
	"fmt"

	"github.com/concord-go/concord/internal/causal"
)

// MaxRegister holds the largest element ever written, whatever is concurrent. The encoding defines
// the order: numbers and strings with a natural encoding have their own order, elements with a
// codec the order of their bytes. The zero value is empty, for elements with a natural encoding;
// see [NewMaxRegister] for others. Copies are snapshots.
//
// A MaxRegister costs the encoded element and about 60 bytes, and as much again for each write that
// is concurrent with the last. Writing an element that is not larger changes and sends nothing, so
// such a write does not survive a concurrent removal of the register's key.
//
// Use [LWWRegister] if the last write should win rather than the largest.
type MaxRegister[E any] struct{ extreme[E] }

// NewMaxRegister returns an empty register whose elements use the codec.
func NewMaxRegister[E any](c Codec[E]) MaxRegister[E] {
	return MaxRegister[E]{extreme[E]{elem: elem[E]{c}}}
}

func (r *MaxRegister[E]) tag() causal.Tag { return causal.MakeTag(causal.Extreme, r.elem.class()) }

// Set writes e and reports whether it is larger than all elements before. The update fails if e
// cannot be encoded.
func (r *MaxRegister[E]) Set(w *Writer, e E) bool { return r.write(w, r.tag(), e) }

// Value returns the largest element, and whether any was written.
func (r MaxRegister[E]) Value() (e E, ok bool) { return r.value(r.tag()) }

// Merge returns the join of two states of the register.
func (r MaxRegister[E]) Merge(o MaxRegister[E]) MaxRegister[E] {
	r.view = r.merge(&o.view)
	return r
}

// Decode returns the register encoded by AppendBinary, with the receiver's codec.
func (r MaxRegister[E]) Decode(src []byte) (MaxRegister[E], error) {
	v, err := decodeView(src, r.tag())
	if err != nil {
		return r, err
	}
	r.view = v
	return r, nil
}

// String returns the element, or "empty".
func (r MaxRegister[E]) String() string { return textOf(r.Value()) }

// MarshalJSON returns the element, or null.
func (r MaxRegister[E]) MarshalJSON() ([]byte, error) { return jsonOf(r.Value()) }

// MinRegister holds the smallest element ever written. Otherwise it behaves like [MaxRegister].
type MinRegister[E any] struct{ extreme[E] }

// NewMinRegister returns an empty register whose elements use the codec.
func NewMinRegister[E any](c Codec[E]) MinRegister[E] {
	return MinRegister[E]{extreme[E]{elem: elem[E]{c}}}
}

func (r *MinRegister[E]) tag() causal.Tag {
	return causal.MakeTag(causal.Extreme, causal.Min+r.elem.class())
}

// Set writes e and reports whether it is smaller than all elements before. The update fails if e
// cannot be encoded.
func (r *MinRegister[E]) Set(w *Writer, e E) bool { return r.write(w, r.tag(), e) }

// Value returns the smallest element, and whether any was written.
func (r MinRegister[E]) Value() (e E, ok bool) { return r.value(r.tag()) }

// Merge returns the join of two states of the register.
func (r MinRegister[E]) Merge(o MinRegister[E]) MinRegister[E] {
	r.view = r.merge(&o.view)
	return r
}

// Decode returns the register encoded by AppendBinary, with the receiver's codec.
func (r MinRegister[E]) Decode(src []byte) (MinRegister[E], error) {
	v, err := decodeView(src, r.tag())
	if err != nil {
		return r, err
	}
	r.view = v
	return r, nil
}

// String returns the element, or "empty".
func (r MinRegister[E]) String() string { return textOf(r.Value()) }

// MarshalJSON returns the element, or null.
func (r MinRegister[E]) MarshalJSON() ([]byte, error) { return jsonOf(r.Value()) }

// extreme is the common part of both registers. The payload is the encoded element.
type extreme[E any] struct {
	view
	elem elem[E]
}

// better reports whether payload a wins over b in a register with the tag.
func better(t causal.Tag, a, b string) bool {
	if t.Class() >= causal.Min {
		return a < b
	}
	return a > b
}

// best returns the winning payload, and whether there is one.
func (r *extreme[E]) best(t causal.Tag) (best string, ok bool) {
	at, ok := r.atoms(t)
	if !ok {
		return "", false
	}
	best = at.First().Payload
	for l := range at.All() {
		if better(t, l.Payload, best) {
			best = l.Payload
		}
	}
	return best, true
}

func (r *extreme[E]) write(w *Writer, t causal.Tag, e E) bool {
	if !r.open(w) {
		return false
	}
	b, err := r.elem.append(nil, e)
	if err != nil {
		w.Fail(err)
		return false
	}
	if best, ok := r.best(t); ok && !better(t, string(b), best) {
		return false
	}
	r.say(w, t, string(b))
	return w.err == nil
}

func (r *extreme[E]) value(t causal.Tag) (e E, ok bool) {
	best, ok := r.best(t)
	if !ok {
		return e, false
	}
	d, err := r.elem.decode([]byte(best))
	if err != nil {
		return e, false
	}
	return d, true
}

func textOf[E any](e E, ok bool) string {
	if !ok {
		return "empty"
	}
	return fmt.Sprint(e)
}

func jsonOf[E any](e E, ok bool) ([]byte, error) {
	if !ok {
		return []byte("null"), nil
	}
	return json.Marshal(e)
}
