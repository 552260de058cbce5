package crdt

import (
	"iter"
	"log/slog"

	"github.com/concord-go/concord/internal/causal"
)

// ORMultiMap is a map from keys to sets of elements: an [ORMap] of [ORSet], with methods that take
// key and element together. Both types read and write the same state. An add wins over a concurrent
// remove of the element or of its key, since a remove deletes only what it has seen. A key is
// present while its set has an element. The zero value is an empty map of keys and elements with a
// natural encoding; see [NewORMultiMap] for others. Copies are snapshots and are safe for
// concurrent reads.
//
// A present element costs the encodings of its key and of itself and about 30 bytes. An absent
// element or key costs nothing: there are no tombstones. A change is sent as that change alone.
//
// Use [LWWMap] if each key has one element.
type ORMultiMap[K, E any] struct{ m ORMap[K, ORSet[E]] }

// NewORMultiMap returns an empty map. Either codec may be nil for a type with a natural encoding.
func NewORMultiMap[K, E any](keys Codec[K], elems Codec[E]) ORMultiMap[K, E] {
	return ORMultiMap[K, E]{NewORMap(keys, NewORSet(elems))}
}

func (m *ORMultiMap[K, E]) hold() *view     { return &m.m.view }
func (m *ORMultiMap[K, E]) tag() causal.Tag { return m.m.tag() }

// Add adds elements to the set at key.
func (m *ORMultiMap[K, E]) Add(w *Writer, key K, elems ...E) {
	m.m.Update(w, key, func(s *ORSet[E]) { s.Add(w, elems...) })
}

// Remove removes elements from the set at key and returns how many of them were present.
func (m *ORMultiMap[K, E]) Remove(w *Writer, key K, elems ...E) (n int) {
	m.m.Update(w, key, func(s *ORSet[E]) { n = s.Remove(w, elems...) })
	return n
}

// Set replaces the set at key with elems. It does not rewrite elements that are already present, so
// a concurrent remove of one of them takes effect.
func (m *ORMultiMap[K, E]) Set(w *Writer, key K, elems ...E) {
	m.m.Update(w, key, func(s *ORSet[E]) {
		var want ORSet[E]
		want.elem = s.elem
		want.Add(&Writer{dot: w.dot}, elems...)
		for e := range s.All() {
			if !want.Contains(e) {
				s.Remove(w, e)
			}
		}
		for _, e := range elems {
			if !s.Contains(e) {
				s.Add(w, e)
			}
		}
	})
}

// RemoveKeys removes keys with all their elements and returns how many of the keys were present.
func (m *ORMultiMap[K, E]) RemoveKeys(w *Writer, keys ...K) (n int) {
	return m.m.Remove(w, keys...)
}

// Clear removes every key.
func (m *ORMultiMap[K, E]) Clear(w *Writer) { m.m.Clear(w) }

// Get returns a copy of the set at key, which is empty if the key is absent.
func (m ORMultiMap[K, E]) Get(key K) ORSet[E] {
	s, _ := m.m.Get(key)
	return s
}

// Contains reports whether the set at key contains e.
func (m ORMultiMap[K, E]) Contains(key K, e E) bool { return m.Get(key).Contains(e) }

// Len returns the number of keys.
func (m ORMultiMap[K, E]) Len() int { return m.m.Len() }

// Keys yields the keys in the order of their encoding.
func (m ORMultiMap[K, E]) Keys() iter.Seq[K] { return m.m.Keys() }

// All yields each pair of a key and one of its elements, in order.
func (m ORMultiMap[K, E]) All() iter.Seq2[K, E] { return flatten(m.m.All()) }

// flatten yields each pair of a key and an element of its set.
func flatten[K, E any](sets iter.Seq2[K, ORSet[E]]) iter.Seq2[K, E] {
	return func(yield func(K, E) bool) {
		for k, s := range sets {
			for e := range s.All() {
				if !yield(k, e) {
					return
				}
			}
		}
	}
}

// Diff returns, in order, the pairs of key and element that must be added to and removed from old
// to obtain m. Between two states of one history the cost is proportional to the sets of the keys
// that changed.
func (m ORMultiMap[K, E]) Diff(old ORMultiMap[K, E]) (added, removed iter.Seq2[K, E]) {
	only := func(m, old ORMultiMap[K, E]) iter.Seq2[K, E] {
		changed, _ := m.m.Diff(old.m)
		return func(yield func(K, E) bool) {
			for k, s := range changed {
				was, _ := old.m.Get(k)
				for e := range s.All() {
					if !was.Contains(e) && !yield(k, e) {
						return
					}
				}
			}
		}
	}
	return only(m, old), only(old, m)
}

// Merge returns the join of two states of the map.
func (m ORMultiMap[K, E]) Merge(o ORMultiMap[K, E]) ORMultiMap[K, E] {
	return ORMultiMap[K, E]{m.m.Merge(o.m)}
}

// AppendBinary appends the canonical encoding: equal states have equal bytes.
func (m ORMultiMap[K, E]) AppendBinary(dst []byte) ([]byte, error) { return m.m.AppendBinary(dst) }

// Decode returns the map encoded by AppendBinary, with the receiver's codecs.
func (m ORMultiMap[K, E]) Decode(src []byte) (ORMultiMap[K, E], error) {
	o, err := m.m.Decode(src)
	return ORMultiMap[K, E]{o}, err
}

// String returns the keys with their elements, in order.
func (m ORMultiMap[K, E]) String() string { return m.m.String() }

// LogValue returns as size the number of elements of all keys.
func (m ORMultiMap[K, E]) LogValue() slog.Value { return m.m.LogValue() }

// MarshalJSON returns the map as an object of arrays, in the order of the keys.
func (m ORMultiMap[K, E]) MarshalJSON() ([]byte, error) { return m.m.MarshalJSON() }
