package crdt

import (
	"errors"
	"fmt"
	"iter"

	"github.com/concord-go/concord/internal/causal"
)

// ORMap is a map from keys to values that merge. A key is present while its value holds anything.
// Removing a key resets its value: the remove deletes exactly the changes it has seen, and a
// concurrent change to the value survives without them. The zero value is an empty map for keys and
// values that need no codec; see [NewORMap] for others. Copies are snapshots and are safe for
// concurrent reads.
//
// Values are types of this package, including maps and records up to 16 levels deep, or
// user-defined types. A user-defined type has no parts that could be reset separately: a change
// concurrent with a remove restores the whole value as the changing replica saw it.
//
// A key costs its encoding for each part of its value. An absent key costs nothing, except the
// marks of removed counters (see [GCounter]).
//
// Use [LWWMap] if each key has one element that is set as a whole.
type ORMap[K any, V Value[V]] struct {
	view
	key   elem[K]
	empty V
}

// NewORMap returns an empty map. The codec of keys may be nil for keys with a natural encoding.
// empty is an empty value, which supplies the codecs of values.
func NewORMap[K any, V Value[V]](keys Codec[K], empty V) ORMap[K, V] {
	return ORMap[K, V]{key: elem[K]{keys}, empty: empty}
}

func (m *ORMap[K, V]) tag() causal.Tag { return causal.MakeTag(causal.ORMap, m.key.class()) }

// valueName returns the type name of the values, without the types of values nested in them.
func (m *ORMap[K, V]) valueName() string {
	if h, ok := heldBy(&m.empty); ok {
		return h.tag().String()
	}
	return causal.Tag(ownTag[0]).String()
}

// child returns the prefix of the value at key.
func (m *ORMap[K, V]) child(key K) (string, error) {
	var kb, pb [96]byte
	k, err := m.key.append(kb[:0], key)
	if err != nil {
		return "", err
	}
	return string(causal.AppendKey(m.base(pb[:0], m.tag()), k)), nil
}

// Update changes the value at key, which is empty if the key is absent. change modifies *v with its
// mutators and w. If w has an error afterwards, the map is unchanged. Do not retain v: changing it
// later fails.
func (m *ORMap[K, V]) Update(w *Writer, key K, change func(v *V)) {
	if !m.open(w) {
		return
	}
	prefix, err := m.child(key)
	if err != nil {
		w.Fail(err)
		return
	}
	before := m.store
	next, err := m.updated(w, prefix, change)
	switch {
	case err != nil:
		w.Fail(fmt.Errorf("map value: %w", err))
	case w.err != nil: // the map is unchanged
	case !m.store.Same(before):
		w.Fail(errNested)
	default:
		m.set(w, next)
	}
}

var errNested = errors.New("crdt: map changed within the Update of one of its values")

// updated returns the store after change.
func (m *ORMap[K, V]) updated(w *Writer, prefix string, change func(v *V)) (causal.Store, error) {
	v := m.empty
	h, ok := heldBy(&v)
	if !ok {
		v, err := loadOwn(m.empty, m.store, prefix)
		if err != nil {
			return m.store, err
		}
		change(&v)
		return putOwn(w, m.store, prefix, v)
	}
	if m.depth >= causal.MaxDepth-1 && h.tag().Kind().Holds() {
		return m.store, fmt.Errorf("%w: values nested deeper than %d", ErrTooLarge,
			causal.MaxDepth)
	}
	w.lines++
	line := loaded + w.lines
	bindTo(h, view{store: m.store, prefix: prefix, seen: m.seen, depth: m.depth + 1, line: line,
		in: w})
	if err := checkHeld(h); err != nil {
		return m.store, err
	}
	change(&v)
	at, err := gathered(h)
	if err != nil {
		return m.store, err
	}
	if at.in != w || at.line != line || at.prefix != prefix {
		return m.store, errForeign
	}
	next := *at
	next.in = nil
	bindTo(h, next)
	return next.store, nil
}

// Remove removes keys and returns how many of them were present.
func (m *ORMap[K, V]) Remove(w *Writer, keys ...K) (n int) {
	if !m.open(w) {
		return 0
	}
	next := m.store
	for _, key := range keys {
		prefix, err := m.child(key)
		if err != nil {
			w.Fail(err)
			return 0
		}
		if next.CountPrefix(prefix) > 0 {
			next = next.ResetPrefix(prefix, w.dot)
			n++
		}
	}
	m.set(w, next)
	return n
}

// Clear removes every key.
func (m *ORMap[K, V]) Clear(w *Writer) {
	if m.open(w) {
		m.set(w, m.store.ResetPrefix(string(m.base(nil, m.tag())), w.dot))
	}
}

// Get returns a copy of the value at key, and whether there is one. Use Update to change the value.
// Get and All do not show a value that a peer wrote with another type of map, but Remove can remove
// it.
func (m ORMap[K, V]) Get(key K) (V, bool) {
	prefix, err := m.child(key)
	if err != nil {
		return m.empty, false
	}
	return m.at(prefix)
}

// at returns the value under the prefix of a key.
func (m *ORMap[K, V]) at(prefix string) (V, bool) {
	v := m.empty
	h, ok := heldBy(&v)
	if !ok {
		if _, ok := m.store.Get(prefix + ownTag); !ok {
			return v, false
		}
		v, err := loadOwn(m.empty, m.store, prefix)
		return v, err == nil
	}
	bindTo(h, view{store: m.store, prefix: prefix, seen: m.seen, depth: m.depth + 1})
	at := h.hold()
	var buf [96]byte
	return v, m.store.CountPrefix(string(at.base(buf[:0], h.tag()))) > 0
}

// Contains reports whether the key is present.
func (m ORMap[K, V]) Contains(key K) bool {
	prefix, err := m.child(key)
	return err == nil && m.store.CountPrefix(prefix) > 0
}

// Len returns the number of keys, without iterating over them. A key under which peers have put
// values of several types counts once for each type.
func (m ORMap[K, V]) Len() int {
	kind := causal.Own
	if h, ok := heldBy(&m.empty); ok {
		kind = h.tag().Kind()
	}
	return m.store.CountChildren(string(m.base(nil, m.tag())), int(m.depth), kind)
}

func (m *ORMap[K, V]) encoder() any { return m.key.append }

// Keys yields the keys in the order of their encoding.
func (m ORMap[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for prefix := range m.store.Children(string(m.base(nil, m.tag()))) {
			if k, ok := m.keyOf(prefix); ok && !yield(k) {
				return
			}
		}
	}
}

// keyOf decodes the key at the end of a value's prefix.
func (m *ORMap[K, V]) keyOf(prefix string) (k K, ok bool) {
	raw, _, ok := causal.CutKey(prefix[len(m.prefix)+1:])
	if !ok {
		return k, false
	}
	k, err := m.key.decode([]byte(raw))
	return k, err == nil
}

// All yields the keys in the order of their encoding, with copies of their values.
func (m ORMap[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for prefix := range m.store.Children(string(m.base(nil, m.tag()))) {
			k, ok := m.keyOf(prefix)
			if !ok {
				continue
			}
			if v, ok := m.at(causal.Clone(prefix)); ok && !yield(k, v) {
				return
			}
		}
	}
}

// Diff returns the keys whose values changed since old, with their current values, and the keys of
// old that were removed, both in order. Between two states of one history the cost is proportional
// to the change, not to the map.
func (m ORMap[K, V]) Diff(old ORMap[K, V]) (changed iter.Seq2[K, V], removed iter.Seq[K]) {
	to, from := together(m.view, old.view)
	m.view = to
	changed = func(yield func(K, V) bool) {
		for _, prefix := range causal.ChangedChildren(from.store, to.store,
			string(to.base(nil, m.tag()))) {
			if k, ok := m.keyOf(prefix); ok && to.store.CountPrefix(prefix) > 0 {
				if v, ok := m.at(prefix); ok && !yield(k, v) {
					return
				}
			}
		}
	}
	removed = func(yield func(K) bool) {
		for _, prefix := range causal.ChangedChildren(from.store, to.store,
			string(to.base(nil, m.tag()))) {
			if to.store.CountPrefix(prefix) > 0 || from.store.CountPrefix(prefix) == 0 {
				continue
			}
			if k, ok := m.keyOf(prefix); ok && !yield(k) {
				return
			}
		}
	}
	return changed, removed
}

// Merge returns the join of two states of the map.
func (m ORMap[K, V]) Merge(o ORMap[K, V]) ORMap[K, V] {
	m.view = m.merge(&o.view)
	return m
}

// Decode returns the map encoded by AppendBinary, with the receiver's codecs.
func (m ORMap[K, V]) Decode(src []byte) (ORMap[K, V], error) {
	v, err := decodeView(src, m.tag())
	if err != nil {
		return m, err
	}
	m.view = v
	return m, nil
}
