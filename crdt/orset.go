package crdt

import (
	"iter"

	"github.com/concord-go/concord/internal/causal"
)

// ORSet is a set in which an add wins over a concurrent remove: a remove deletes only what it has
// seen, and an add it has not seen survives. The zero value is an empty set of elements with a
// natural encoding; see [NewORSet] for others. Copies are snapshots and are safe for concurrent
// reads.
//
// A present element costs its encoding and about 30 bytes, and 24 more for each further replica
// that added it concurrently. An absent element costs nothing, whatever its history: there are no
// tombstones. A set used alone keeps 16 bytes for each replica that ever changed it.
//
// Use another type if the elements carry a value ([LWWMap]), or if the number of additions matters
// ([PNCounter]).
type ORSet[E any] struct {
	view
	elem elem[E]
}

// NewORSet returns an empty set whose elements use the codec.
func NewORSet[E any](c Codec[E]) ORSet[E] { return ORSet[E]{elem: elem[E]{c}} }

func (s *ORSet[E]) tag() causal.Tag { return causal.MakeTag(causal.ORSet, s.elem.class()) }

// path appends the path of e.
func (s *ORSet[E]) path(dst []byte, e E) ([]byte, error) {
	return s.elem.append(s.base(dst, s.tag()), e)
}

// Add adds elements to the set. The update fails if an element cannot be encoded.
func (s *ORSet[E]) Add(w *Writer, elems ...E) {
	if !s.open(w) {
		return
	}
	var buf [96]byte
	next := s.store
	for _, e := range elems {
		path, err := s.path(buf[:0], e)
		if err == nil {
			next, err = put(w, next, path, causal.Leaf{Dot: w.dot})
		}
		if err != nil {
			w.Fail(err)
			return
		}
	}
	s.set(w, next)
}

// Remove removes elements and returns how many of them were present. The update fails if an element
// cannot be encoded.
func (s *ORSet[E]) Remove(w *Writer, elems ...E) (n int) {
	if !s.open(w) {
		return 0
	}
	var buf [96]byte
	next := s.store
	for _, e := range elems {
		path, err := s.path(buf[:0], e)
		if err != nil {
			w.Fail(err)
			return 0
		}
		before := next.Len()
		next = drop(w, next, path)
		n += before - next.Len()
	}
	s.set(w, next)
	return n
}

// Clear removes every element.
func (s *ORSet[E]) Clear(w *Writer) {
	if s.open(w) {
		s.set(w, s.store.DropPrefix(string(s.base(nil, s.tag()))))
	}
}

// Contains reports whether e is in the set.
func (s ORSet[E]) Contains(e E) bool {
	var buf [96]byte
	path, err := s.path(buf[:0], e)
	if err != nil {
		return false
	}
	_, ok := s.store.Get(string(path))
	return ok
}

func (s *ORSet[E]) encoder() any { return s.elem.append }

// Len returns the number of elements.
func (s ORSet[E]) Len() int { return s.store.CountPrefix(string(s.base(nil, s.tag()))) }

// All yields the elements in the order of their encoding. It skips bytes that do not decode, which
// only a peer with another codec can have written.
func (s ORSet[E]) All() iter.Seq[E] { return members(s.view, s.elem, s.tag(), present) }

// Diff returns, in order, the elements that must be added to and removed from old to obtain s.
// Between two states of one history the cost is proportional to the change, not to the set.
func (s ORSet[E]) Diff(old ORSet[E]) (added, removed iter.Seq[E]) {
	return newMembers(old.view, s.view, s.elem, s.tag(), present),
		newMembers(s.view, old.view, s.elem,
			s.tag(), present)
}

// Merge returns the join of two states of the set.
func (s ORSet[E]) Merge(o ORSet[E]) ORSet[E] {
	s.view = s.merge(&o.view)
	return s
}

// Decode returns the set encoded by AppendBinary, with the receiver's codec.
func (s ORSet[E]) Decode(src []byte) (ORSet[E], error) {
	v, err := decodeView(src, s.tag())
	if err != nil {
		return s, err
	}
	s.view = v
	return s, nil
}
