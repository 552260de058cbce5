package crdt

import (
	"iter"

	"github.com/concord-go/concord/internal/causal"
)

// GSet is a set that only grows: all concurrent adds are kept. Adding an element that is already in
// the set changes and sends nothing. The zero value is an empty set of elements with a natural
// encoding; see [NewGSet] for others. Copies are snapshots and are safe for concurrent reads.
//
// An element costs its encoding and about 30 bytes, and 24 more for each further replica that added
// it concurrently. Only removing the set's key frees them. An Add of an element that was already
// there does not survive such a removal, since it changed nothing.
//
// Use [ORSet] or [RWSet] if elements must be removed again.
type GSet[E any] struct {
	view
	elem elem[E]
}

// NewGSet returns an empty set whose elements use the codec.
func NewGSet[E any](c Codec[E]) GSet[E] { return GSet[E]{elem: elem[E]{c}} }

func (s *GSet[E]) tag() causal.Tag { return causal.MakeTag(causal.GSet, s.elem.class()) }

// Add adds elements to the set. The update fails if an element cannot be encoded.
func (s *GSet[E]) Add(w *Writer, elems ...E) {
	if !s.open(w) {
		return
	}
	var buf [96]byte
	next := s.store
	for _, e := range elems {
		path, err := s.elem.append(s.base(buf[:0], s.tag()), e)
		if err == nil {
			if _, there := next.Get(string(path)); there {
				continue
			}
			next, err = put(w, next, path, causal.Leaf{Dot: w.dot})
		}
		if err != nil {
			w.Fail(err)
			return
		}
	}
	s.set(w, next)
}

// Contains reports whether e is in the set.
func (s GSet[E]) Contains(e E) bool {
	var buf [96]byte
	path, err := s.elem.append(s.base(buf[:0], s.tag()), e)
	if err != nil {
		return false
	}
	_, ok := s.store.Get(string(path))
	return ok
}

// Len returns the number of elements.
func (s GSet[E]) Len() int { return s.store.CountPrefix(string(s.base(nil, s.tag()))) }

// All yields the elements in the order of their encoding.
func (s GSet[E]) All() iter.Seq[E] { return members(s.view, s.elem, s.tag(), present) }

// Diff returns, in order, the elements that must be added to and removed from old to obtain s. If
// old is an earlier state of s, nothing is removed. Between two states of one history the cost is
// proportional to the change.
func (s GSet[E]) Diff(old GSet[E]) (added, removed iter.Seq[E]) {
	return newMembers(old.view, s.view, s.elem, s.tag(), present),
		newMembers(s.view, old.view, s.elem,
			s.tag(), present)
}

// Merge returns the join of two states of the set.
func (s GSet[E]) Merge(o GSet[E]) GSet[E] {
	s.view = s.merge(&o.view)
	return s
}

// Decode returns the set encoded by AppendBinary, with the receiver's codec.
func (s GSet[E]) Decode(src []byte) (GSet[E], error) {
	v, err := decodeView(src, s.tag())
	if err != nil {
		return s, err
	}
	s.view = v
	return s, nil
}

// String returns the elements in order.
func (s GSet[E]) String() string { return text(s.All()) }

// MarshalJSON returns the elements as an array.
func (s GSet[E]) MarshalJSON() ([]byte, error) { return jsonArray(s.All()) }
