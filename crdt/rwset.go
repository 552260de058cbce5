package crdt

import (
	"iter"
	"log/slog"

	"github.com/concord-go/concord/internal/causal"
)

// RWSet is a set in which a remove wins over a concurrent add: an element is in if it was added and
// every remove of it was seen by a later add. The zero value is an empty set of elements with a natural
// encoding; see [NewRWSet] for others. Copies are snapshots and may be read from many goroutines.
//
// A remove has to be remembered, or it could not win over an add that comes later: a removed element
// costs as much as a present one, its encoding and about 60 bytes, until it is added again or
// forgotten, see [RWSet.Forget]. Each further replica that wrote the element concurrently costs 40
// bytes more. Removing an element that was never there is remembered too.
//
// Take it for permissions and the like, where a wrong yes is worse than a wrong no; [ORSet], which
// keeps nothing of what was removed, for everything else.
type RWSet[E any] struct {
	view
	elem elem[E]
}

// NewRWSet returns an empty set whose elements use the codec.
func NewRWSet[E any](c Codec[E]) RWSet[E] { return RWSet[E]{elem: elem[E]{c}} }

func (s *RWSet[E]) tag() causal.Tag { return causal.MakeTag(causal.RWSet, s.elem.class()) }

// Add puts elements into the set. An element that cannot be encoded refuses the update.
func (s *RWSet[E]) Add(w *Writer, elems ...E) { s.write(w, "", elems) }

// Remove takes elements out, also against adds that are not seen yet, and returns how many of them
// were in. An element that cannot be encoded refuses the update.
func (s *RWSet[E]) Remove(w *Writer, elems ...E) (n int) { return s.write(w, causal.Gone, elems) }

// write says the payload of elements and returns how many of them were in.
func (s *RWSet[E]) write(w *Writer, payload string, elems []E) (n int) {
	if !s.open(w) {
		return 0
	}
	var buf [96]byte
	next := s.store
	for _, e := range elems {
		path, err := s.elem.append(s.base(buf[:0], s.tag()), e)
		if err == nil {
			if at, ok := next.Get(string(path)); ok && agreed(at) {
				n++
			}
			next, err = put(w, next, path, causal.Leaf{Dot: w.dot, Payload: payload})
		}
		if err != nil {
			w.Fail(err)
			return 0
		}
	}
	s.set(w, next)
	return n
}

// Clear removes every element that is in.
func (s *RWSet[E]) Clear(w *Writer) {
	if !s.open(w) {
		return
	}
	next := s.store
	for path, at := range s.store.Prefix(string(s.base(nil, s.tag()))) {
		if agreed(at) {
			next = next.Put(path, causal.Leaf{Dot: w.dot, Payload: causal.Gone})
		}
	}
	s.set(w, next)
}

// Forget frees what is remembered of removed elements. An add that is concurrent with such a remove,
// and not seen yet, will then be in: call it when none can be on its way any more.
func (s *RWSet[E]) Forget(w *Writer) {
	if !s.open(w) {
		return
	}
	next := s.store
	for path, at := range s.store.Prefix(string(s.base(nil, s.tag()))) {
		if !agreed(at) {
			next = next.Drop(path)
		}
	}
	s.set(w, next)
}

// Contains reports whether e is in the set.
func (s RWSet[E]) Contains(e E) bool {
	var buf [96]byte
	path, err := s.elem.append(s.base(buf[:0], s.tag()), e)
	if err != nil {
		return false
	}
	at, ok := s.store.Get(string(path))
	return ok && agreed(at)
}

// Len returns the number of elements. It takes time in proportion to them and to the removed ones.
func (s RWSet[E]) Len() (n int) {
	for _, at := range s.store.Prefix(string(s.base(nil, s.tag()))) {
		if agreed(at) {
			n++
		}
	}
	return n
}

// All yields the elements in the order of their encoding.
func (s RWSet[E]) All() iter.Seq[E] { return members(s.view, s.elem, s.tag(), agreed) }

// Diff returns what must be added to and removed from old to get the set, in order. Between two states
// of one history it costs as much as the change, not as the set.
func (s RWSet[E]) Diff(old RWSet[E]) (added, removed iter.Seq[E]) {
	return newMembers(old.view, s.view, s.elem, s.tag(), agreed), newMembers(s.view, old.view, s.elem, s.tag(), agreed)
}

// Merge returns the join of two states of the set.
func (s RWSet[E]) Merge(o RWSet[E]) RWSet[E] {
	s.view = s.merge(&o.view)
	return s
}

// AppendBinary appends the canonical encoding: equal states have equal bytes.
func (s RWSet[E]) AppendBinary(dst []byte) ([]byte, error) { return s.appendBinary(dst) }

// Decode returns the set that AppendBinary wrote, with the receiver's codec.
func (s RWSet[E]) Decode(src []byte) (RWSet[E], error) {
	v, err := decodeView(src, s.tag())
	if err != nil {
		return s, err
	}
	s.view = v
	return s, nil
}

// String returns the elements in order.
func (s RWSet[E]) String() string { return text(s.All()) }

// LogValue returns type and size, removed elements included.
func (s RWSet[E]) LogValue() slog.Value { return s.logValue(s.tag()) }

// MarshalJSON returns the elements as an array.
func (s RWSet[E]) MarshalJSON() ([]byte, error) { return jsonArray(s.All()) }
