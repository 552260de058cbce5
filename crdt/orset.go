package crdt

import (
	"iter"

	"github.com/concord-go/concord/internal/causal"
)

// ORSet is a set in which an add wins over a concurrent remove: a remove takes away what it has seen,
// and an add it has not seen stays. The zero value is an empty set of elements with a natural
// encoding; see [NewORSet] for others. Copies are snapshots and may be read from many goroutines.
//
// A present element costs its encoding and about 30 bytes; an absent one costs nothing, whatever its
// history: there are no tombstones.
type ORSet[E any] struct {
	view
	elem elem[E]
}

// NewORSet returns an empty set whose elements use the codec.
func NewORSet[E any](c Codec[E]) ORSet[E] { return ORSet[E]{elem: elem[E]{c}} }

func (s *ORSet[E]) tag() causal.Tag { return causal.MakeTag(causal.ORSet, s.elem.class()) }

// base is the path before the element.
func (s *ORSet[E]) base(dst []byte) []byte { return append(append(dst, s.prefix...), byte(s.tag())) }

// path returns where e lives.
func (s *ORSet[E]) path(e E) (string, error) {
	var buf [64]byte
	b, err := s.elem.append(s.base(buf[:0]), e)
	return string(b), err
}

// Add puts elements into the set. An element that cannot be encoded refuses the update.
func (s *ORSet[E]) Add(w *Writer, elems ...E) {
	for _, e := range elems {
		if !w.ok() {
			return
		}
		path, err := s.path(e)
		if err != nil {
			w.Fail(err)
			return
		}
		s.store = s.store.Put(path, causal.Leaf{Dot: w.dot})
	}
	s.saw(w)
}

// Remove takes elements out and returns how many of them were there. An element that cannot be
// encoded refuses the update.
func (s *ORSet[E]) Remove(w *Writer, elems ...E) (n int) {
	for _, e := range elems {
		if !w.ok() {
			return n
		}
		path, err := s.path(e)
		if err != nil {
			w.Fail(err)
			return n
		}
		if _, ok := s.store.Get(path); ok {
			s.store = s.store.Drop(path)
			n++
		}
	}
	s.saw(w)
	return n
}

// Clear takes out every element.
func (s *ORSet[E]) Clear(w *Writer) {
	if !w.ok() {
		return
	}
	s.store = s.store.DropPrefix(string(s.base(nil)))
	s.saw(w)
}

// Contains reports whether e is in the set.
func (s ORSet[E]) Contains(e E) bool {
	path, err := s.path(e)
	if err != nil {
		return false
	}
	_, ok := s.store.Get(path)
	return ok
}

// Len returns the number of elements.
func (s ORSet[E]) Len() int { return s.store.CountPrefix(string(s.base(nil))) }

// All yields the elements in the order of their encoding. Bytes that are no element, which only a
// peer with another codec can have put there, are passed over.
func (s ORSet[E]) All() iter.Seq[E] {
	return func(yield func(E) bool) {
		base := string(s.base(nil))
		for path := range s.store.Prefix(base) {
			if e, err := s.elem.decode([]byte(path[len(base):])); err == nil && !yield(e) {
				return
			}
		}
	}
}

// Merge returns the join of two states of the set.
func (s ORSet[E]) Merge(o ORSet[E]) ORSet[E] {
	s.view = s.merge(o.view)
	return s
}

// AppendBinary appends the canonical encoding: equal states have equal bytes.
func (s ORSet[E]) AppendBinary(dst []byte) ([]byte, error) { return s.appendBinary(dst) }

// Decode returns the set that AppendBinary wrote, with the receiver's codec.
func (s ORSet[E]) Decode(src []byte) (ORSet[E], error) {
	err := s.decode(src)
	return s, err
}
