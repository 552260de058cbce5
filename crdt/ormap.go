package crdt

import (
	"errors"
	"fmt"
	"iter"

	"github.com/concord-go/concord/internal/causal"
)

// ORMap is a map from keys to values that merge. A key is present while its value holds anything.
// Removing a key resets its value: it takes away exactly what the remover had seen of it, and a
// change to the value that is concurrent with the remove survives, alone. What was removed does not
// come back with it. The zero value is an empty map for keys and values that need no codec; see
// [NewORMap] for others. Copies are snapshots and may be read from many goroutines.
//
// Values are types of this package, maps and records included up to 16 deep, or own types. An own type has no
// parts that could be reset apart: a change concurrent with a remove brings back the whole value as
// the changer saw it.
//
// A key costs its encoding in front of each part of its value; an absent key costs nothing, except
// the marks of removed counters (see [GCounter]).
//
// Take [LWWMap] when each key has one element that is set as a whole.
type ORMap[K any, V Value[V]] struct {
	view
	key   elem[K]
	empty V
}

// NewORMap returns an empty map. The codec of keys may be nil for keys with a natural encoding; empty
// is an empty value, which supplies its codecs.
func NewORMap[K any, V Value[V]](keys Codec[K], empty V) ORMap[K, V] {
	return ORMap[K, V]{key: elem[K]{keys}, empty: empty}
}

// MaxDepth is the number of maps and records that may lie in each other.
const MaxDepth = causal.MaxDepth

func (m *ORMap[K, V]) tag() causal.Tag { return causal.MakeTag(causal.ORMap, m.key.class()) }

// valueName names the type of the values, without that of values in them.
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

// Update changes the value at key, which begins empty. change works on *v with its mutators and w;
// after an error in w the map is as it was. Keep nothing of v: changing it later is refused.
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
	case w.err != nil: // the map stays as it was
	case !m.store.Same(before):
		w.Fail(errNested)
	default:
		m.set(w, next)
	}
}

var errNested = errors.New("crdt: map changed by the function that changes one of its values")

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
		return saveOwn(w, m.store, prefix, v)
	}
	if m.depth >= MaxDepth-1 && h.tag().Kind().Holds() {
		return m.store, fmt.Errorf("%w: values nested deeper than %d", ErrTooLarge, MaxDepth)
	}
	w.lines++
	line := loaded + w.lines
	bindTo(h, view{store: m.store, prefix: prefix, seen: m.seen, depth: m.depth + 1, line: line, in: w})
	if err := checkHeld(h); err != nil {
		return m.store, err
	}
	change(&v)
	at, err := gathered(h)
	if err != nil {
		return m.store, err
	}
	if at.in != w || at.line != line || at.prefix != prefix {
		return m.store, ErrForeign
	}
	next := *at
	next.in = nil
	bindTo(h, next)
	return next.store, nil
}

// Remove takes keys out and returns how many of them were there.
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

// Clear takes out every key.
func (m *ORMap[K, V]) Clear(w *Writer) {
	if m.open(w) {
		m.set(w, m.store.ResetPrefix(string(m.base(nil, m.tag())), w.dot))
	}
}

// Get returns a copy of the value at key, and whether there is one. To change it use Update. A value
// that a peer with another idea of the map's type put there does not show here and in All, but can be
// removed.
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

// Len returns the number of keys, without walking over them. A key under which peers have put values of
// several types counts for each.
func (m ORMap[K, V]) Len() int {
	kind := causal.Own
	if h, ok := heldBy(&m.empty); ok {
		kind = h.tag().Kind()
	}
	return m.store.CountChildren(string(m.base(nil, m.tag())), int(m.depth), kind)
}

// AppendKey appends the canonical encoding of a key: equal keys have equal bytes. The error is that of the codec.
func (m ORMap[K, V]) AppendKey(dst []byte, key K) ([]byte, error) { return m.key.append(dst, key) }

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

// keyOf decodes the key that the prefix of a value ends with.
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

// Diff returns the keys whose values are new or not what they were in old, with the values they have
// now, and the keys of old that are gone, both in order. Between two states of one history it costs as
// much as the change, not as the map.
func (m ORMap[K, V]) Diff(old ORMap[K, V]) (changed iter.Seq2[K, V], removed iter.Seq[K]) {
	to, from := together(m.view, old.view)
	m.view = to
	changed = func(yield func(K, V) bool) {
		for _, prefix := range causal.ChangedChildren(from.store, to.store, string(to.base(nil, m.tag()))) {
			if k, ok := m.keyOf(prefix); ok && to.store.CountPrefix(prefix) > 0 {
				if v, ok := m.at(prefix); ok && !yield(k, v) {
					return
				}
			}
		}
	}
	removed = func(yield func(K) bool) {
		for _, prefix := range causal.ChangedChildren(from.store, to.store, string(to.base(nil, m.tag()))) {
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

// AppendBinary appends the canonical encoding: equal states have equal bytes.
func (m ORMap[K, V]) AppendBinary(dst []byte) ([]byte, error) { return m.appendBinary(dst) }

// Decode returns the map that AppendBinary wrote, with the receiver's codecs.
func (m ORMap[K, V]) Decode(src []byte) (ORMap[K, V], error) {
	v, err := decodeView(src, m.tag())
	if err != nil {
		return m, err
	}
	m.view = v
	return m, nil
}
