package crdt

import (
	"iter"

	"github.com/concord-go/concord/internal/causal"
)

// RWSet is a set in which a remove wins over a concurrent add: an element is in the set if it was
// added, and a later add has seen each remove; different adds may have seen different ones. The
// zero value is an empty set of elements with a natural encoding; see [NewRWSet] for others. Copies
// are snapshots and are safe for concurrent reads.
//
// The set must remember a remove so that it wins over adds that arrive later. A removed element
// therefore costs as much as a present one, its encoding and about 60 bytes, until it is added
// again or forgotten, see [RWSet.Forget]. Each further replica that wrote the element concurrently
// costs 40 bytes more. Removing an element that was never in the set is remembered too.
//
// Use RWSet for permissions and the like, where a wrong yes is worse than a wrong no. For
// everything else use [ORSet], which keeps nothing of removed elements.
type RWSet[E any] struct {
	view
	elem elem[E]
}

// NewRWSet returns an empty set whose elements use the codec.
func NewRWSet[E any](c Codec[E]) RWSet[E] { return RWSet[E]{elem: elem[E]{c}} }

func (s *RWSet[E]) tag() causal.Tag { return causal.MakeTag(causal.RWSet, s.elem.class()) }

// Add adds elements to the set. The update fails if an element cannot be encoded.
func (s *RWSet[E]) Add(w *Writer, elems ...E) { s.write(w, "", elems) }

// Remove removes elements, even if there are concurrent adds it has not seen, and returns how many
// of them were in the set. The update fails if an element cannot be encoded.
func (s *RWSet[E]) Remove(w *Writer, elems ...E) (n int) { return s.write(w, causal.Gone, elems) }

// write writes the payload for each element and returns how many of the elements were in the set.
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

// Clear removes every element that is in the set.
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

// Forget frees the memory used by removed elements. A concurrent add that arrives after Forget puts
// its element back into the set, so call Forget only when no such add can still be in flight.
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

// Len returns the number of elements, in time proportional to the number of present and removed
// elements.
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

// Diff returns, in order, the elements that must be added to and removed from old to obtain s.
// Between two states of one history the cost is proportional to the change, not to the set.
func (s RWSet[E]) Diff(old RWSet[E]) (added, removed iter.Seq[E]) {
	return newMembers(old.view, s.view, s.elem, s.tag(), agreed),
		newMembers(s.view, old.view, s.elem,
			s.tag(), agreed)
}

// Merge returns the join of two states of the set.
func (s RWSet[E]) Merge(o RWSet[E]) RWSet[E] {
	s.view = s.merge(&o.view)
	return s
}

// Decode returns the set encoded by AppendBinary, with the receiver's codec.
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

// MarshalJSON returns the elements as an array.
func (s RWSet[E]) MarshalJSON() ([]byte, error) { return jsonArray(s.All()) }
