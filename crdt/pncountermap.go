package crdt

import (
	"iter"
	"log/slog"

	"github.com/concord-go/concord/internal/causal"
)

// PNCounterMap is a map from keys to counters: an [ORMap] of [PNCounter], with methods that take
// key and number together. Both types read and write the same state. Every addition counts.
// Removing a key removes exactly the additions it has seen; a concurrent addition survives. A key
// is present once something was added to it, even if the sum is 0. The zero value is an empty map
// of keys with a natural encoding; see [NewPNCounterMap] for others. Copies are snapshots and are
// safe for concurrent reads.
//
// A key costs its encoding and about 60 bytes for each replica that counted there. An absent key
// costs nothing except the marks described at [GCounter].
type PNCounterMap[K any] struct{ m ORMap[K, PNCounter] }

// NewPNCounterMap returns an empty map whose keys use the codec.
func NewPNCounterMap[K any](keys Codec[K]) PNCounterMap[K] {
	return PNCounterMap[K]{NewORMap(keys, PNCounter{})}
}

func (m *PNCounterMap[K]) hold() *view     { return &m.m.view }
func (m *PNCounterMap[K]) tag() causal.Tag { return m.m.tag() }

// Add adds n, which may be negative, to the counter at key; see [PNCounter.Add].
func (m *PNCounterMap[K]) Add(w *Writer, key K, n int64) {
	m.m.Update(w, key, func(c *PNCounter) { c.Add(w, n) })
}

// Remove removes keys and returns how many of them were present.
func (m *PNCounterMap[K]) Remove(w *Writer, keys ...K) (n int) { return m.m.Remove(w, keys...) }

// Clear removes every key.
func (m *PNCounterMap[K]) Clear(w *Writer) { m.m.Clear(w) }

// Get returns the count at key, or 0 if the key is absent.
func (m PNCounterMap[K]) Get(key K) int64 {
	c, _ := m.m.Get(key)
	return c.Value()
}

// Contains reports whether the key is present.
func (m PNCounterMap[K]) Contains(key K) bool { return m.m.Contains(key) }

// Len returns the number of keys.
func (m PNCounterMap[K]) Len() int { return m.m.Len() }

// Keys yields the keys in the order of their encoding.
func (m PNCounterMap[K]) Keys() iter.Seq[K] { return m.m.Keys() }

// All yields the keys in the order of their encoding, with their counts.
func (m PNCounterMap[K]) All() iter.Seq2[K, int64] { return counts(m.m.All()) }

// Diff returns the keys whose counters changed since old, with their current counts, and the keys
// of old that were removed, both in order. Between two states of one history the cost is
// proportional to the change.
func (m PNCounterMap[K]) Diff(old PNCounterMap[K]) (changed iter.Seq2[K, int64],
	removed iter.Seq[K]) {
	c, removed := m.m.Diff(old.m)
	return counts(c), removed
}

func counts[K any](all iter.Seq2[K, PNCounter]) iter.Seq2[K, int64] {
	return func(yield func(K, int64) bool) {
		for k, c := range all {
			if !yield(k, c.Value()) {
				return
			}
		}
	}
}

// Merge returns the join of two states of the map.
func (m PNCounterMap[K]) Merge(o PNCounterMap[K]) PNCounterMap[K] {
	return PNCounterMap[K]{m.m.Merge(o.m)}
}

// AppendBinary appends the canonical encoding: equal states have equal bytes.
func (m PNCounterMap[K]) AppendBinary(dst []byte) ([]byte, error) { return m.m.AppendBinary(dst) }

// Decode returns the map encoded by AppendBinary, with the receiver's codec.
func (m PNCounterMap[K]) Decode(src []byte) (PNCounterMap[K], error) {
	o, err := m.m.Decode(src)
	return PNCounterMap[K]{o}, err
}

// String returns the keys with their counts, in order of the keys.
func (m PNCounterMap[K]) String() string { return m.m.String() }

// LogValue returns as size the number of slots of all counters.
func (m PNCounterMap[K]) LogValue() slog.Value { return m.m.LogValue() }

// MarshalJSON returns the map as an object in the order of the keys.
func (m PNCounterMap[K]) MarshalJSON() ([]byte, error) { return m.m.MarshalJSON() }
