package history

import (
	"iter"
	"slices"
	"strings"

	"github.com/concord-go/concord/internal/pmap"
)

// Keys is the content of a replica, by key. It is immutable, like the map that it wraps. The Held
// values are stored outside the nodes of the map, which a write copies.
type Keys struct{ m pmap.Map[*Held] }

// Len returns the number of keys.
func (k Keys) Len() int { return k.m.Len() }

// Same reports whether both are certainly equal; false proves nothing.
func (k Keys) Same(o Keys) bool { return k.m.Same(o.m) }

// Get returns the content of a key, and whether there is any.
func (k Keys) Get(key string) (Held, bool) {
	h, ok := k.m.Get(key)
	if !ok {
		return Held{}, false
	}
	return *h, true
}

// All yields the keys in order, with their content. The yielded keys alias the map.
func (k Keys) All() iter.Seq2[string, Held] { return k.From("") }

// From is like All, but begins at a key.
func (k Keys) From(key string) iter.Seq2[string, Held] {
	return func(yield func(string, Held) bool) {
		for key, h := range k.m.From(key) {
			if !yield(key, *h) {
				return
			}
		}
	}
}

func (k Keys) put(key string, h Held) Keys { return Keys{k.m.Put(key, &h)} }

// keyPut is a key with its new content.
type keyPut = pmap.Pair[*Held]

// putAll sorts the puts, whose keys are distinct, and applies them.
func (k Keys) putAll(puts []keyPut) Keys {
	byKey := func(a, b keyPut) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(puts, byKey) {
		slices.SortFunc(puts, byKey)
	}
	return Keys{k.m.PutAll(puts)}
}

// With returns k with other contents of some keys. They have no fingerprints, so the result is for
// readers only.
func (k Keys) With(contents iter.Seq2[string, Held]) Keys {
	var puts []keyPut
	for key, h := range contents {
		if h.Blank() {
			k = k.delete(key)
		} else {
			puts = append(puts, keyPut{Key: key, Value: &h})
		}
	}
	return k.putAll(puts)
}

func (k Keys) delete(key string) Keys { return Keys{k.m.Delete(key)} }

// Diff calls f for each key whose content may differ between k and o.
func (k Keys) Diff(o Keys, f func(key string, a, b Held)) {
	pmap.Diff(k.m, o.m, (*Held).same, func(key string, a *Held, inA bool, b *Held, inB bool) bool {
		var x, y Held
		if inA {
			x = *a
		}
		if inB {
			y = *b
		}
		f(key, x, y)
		return true
	})
}

// same reports whether both hold the same atoms, and no marks that could differ.
func (h *Held) same(o *Held) bool {
	return h.Same(o.Store) || h.sum == o.sum && !h.HasMarks() && !o.HasMarks()
}
