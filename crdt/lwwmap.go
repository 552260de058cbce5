package crdt

import (
	"iter"

	"github.com/concord-go/concord/internal/causal"
)

// LWWMap is a map from keys to elements that are set as a whole: an [ORMap] of [LWWRegister], with
// the methods of a plain map. Both types read and write the same state. Among concurrent writes to
// a key the one with the largest stamp wins, see [LWWRegister]. A write wins over a concurrent
// remove, whatever the clocks say, since a remove deletes only what it has seen. The zero value is
// an empty map of keys and elements with a natural encoding; see [NewLWWMap] for others. Copies are
// snapshots and are safe for concurrent reads.
//
// A present key costs its encoding, that of its element, and about 90 bytes. An absent key costs
// nothing: there are no tombstones.
//
// Use [ORMap] if concurrent changes to one key must all count.
type LWWMap[K, E any] struct{ m ORMap[K, LWWRegister[E]] }

// NewLWWMap returns an empty map. Either codec may be nil for a type with a natural encoding.
func NewLWWMap[K, E any](keys Codec[K], elems Codec[E]) LWWMap[K, E] {
	return LWWMap[K, E]{NewORMap(keys, NewLWWRegister(elems))}
}

func (m *LWWMap[K, E]) hold() *view     { return &m.m.view }
func (m *LWWMap[K, E]) tag() causal.Tag { return m.m.tag() }

// Set writes e at key.
func (m *LWWMap[K, E]) Set(w *Writer, key K, e E) {
	m.m.Update(w, key, func(r *LWWRegister[E]) { r.Set(w, e) })
}

// SetAt is like Set with a given stamp; see [LWWRegister.SetAt].
func (m *LWWMap[K, E]) SetAt(w *Writer, key K, e E, stamp uint64) (won bool) {
	m.m.Update(w, key, func(r *LWWRegister[E]) { won = r.SetAt(w, e, stamp) })
	return won
}

// SetFirst writes e unless the key is present, and reports whether it did; see
// [LWWRegister.SetFirst].
func (m *LWWMap[K, E]) SetFirst(w *Writer, key K, e E) (won bool) {
	m.m.Update(w, key, func(r *LWWRegister[E]) { won = r.SetFirst(w, e) })
	return won
}

// Remove removes keys and returns how many of them were present.
func (m *LWWMap[K, E]) Remove(w *Writer, keys ...K) (n int) { return m.m.Remove(w, keys...) }

// Clear removes every key.
func (m *LWWMap[K, E]) Clear(w *Writer) { m.m.Clear(w) }

// Get returns the element at key, and whether there is one.
func (m LWWMap[K, E]) Get(key K) (e E, ok bool) {
	r, ok := m.m.Get(key)
	if !ok {
		return e, false
	}
	return r.Value()
}

// Contains reports whether the key is present.
func (m LWWMap[K, E]) Contains(key K) bool { return m.m.Contains(key) }

// Len returns the number of keys.
func (m LWWMap[K, E]) Len() int { return m.m.Len() }

// Keys yields the keys in the order of their encoding.
func (m LWWMap[K, E]) Keys() iter.Seq[K] { return m.m.Keys() }

// All yields the keys in the order of their encoding, with their elements.
func (m LWWMap[K, E]) All() iter.Seq2[K, E] { return elements(m.m.All()) }

// Diff returns the keys written since old, with their current elements, and the keys of old that
// were removed, both in order. Between two states of one history the cost is proportional to the
// change.
func (m LWWMap[K, E]) Diff(old LWWMap[K, E]) (changed iter.Seq2[K, E], removed iter.Seq[K]) {
	c, removed := m.m.Diff(old.m)
	return elements(c), removed
}

// elements replaces each register by its element.
func elements[K, E any](all iter.Seq2[K, LWWRegister[E]]) iter.Seq2[K, E] {
	return func(yield func(K, E) bool) {
		for k, r := range all {
			if e, ok := r.Value(); ok && !yield(k, e) {
				return
			}
		}
	}
}

// Merge returns the join of two states of the map.
func (m LWWMap[K, E]) Merge(o LWWMap[K, E]) LWWMap[K, E] { return LWWMap[K, E]{m.m.Merge(o.m)} }

// AppendBinary appends the canonical encoding: equal states have equal bytes.
func (m LWWMap[K, E]) AppendBinary(dst []byte) ([]byte, error) { return m.m.AppendBinary(dst) }

// Decode returns the map encoded by AppendBinary, with the receiver's codecs.
func (m LWWMap[K, E]) Decode(src []byte) (LWWMap[K, E], error) {
	o, err := m.m.Decode(src)
	return LWWMap[K, E]{o}, err
}
