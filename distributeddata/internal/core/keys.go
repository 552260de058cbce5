package core

import (
	"iter"
	"slices"
	"strings"

	"github.com/concord-go/concord/internal/pmap"
)

// Keys is what a replica holds, by key: an immutable map like the one it rests on. What is held lies
// outside of the map's nodes, which a write copies.
type Keys struct{ m pmap.Map[*Held] }

// Len returns the number of keys.
func (k Keys) Len() int { return k.m.Len() }

// Same reports whether both are certainly the same; false proves nothing.
func (k Keys) Same(o Keys) bool { return k.m.Same(o.m) }

// Get returns what is held under a key: the zero value if nothing is.
func (k Keys) Get(key string) (Held, bool) {
	h, ok := k.m.Get(key)
	if !ok {
		return Held{}, false
	}
	return *h, true
}

// All yields the keys in order, with what is held under them. The yielded keys alias the map.
func (k Keys) All() iter.Seq2[string, Held] { return k.From("") }

// From yields the keys from a key on.
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

// keyPut is a key with what is to be held under it.
type keyPut = pmap.Pair[*Held]

// putAll sorts the puts, which are of different keys, and puts them all.
func (k Keys) putAll(puts []keyPut) Keys {
	byKey := func(a, b keyPut) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(puts, byKey) {
		slices.SortFunc(puts, byKey)
	}
	return Keys{k.m.PutAll(puts)}
}

func (k Keys) delete(key string) Keys { return Keys{k.m.Delete(key)} }

// diff calls f for each key under which a and b hold something else.
func (k Keys) diff(o Keys, f func(key string, a, b Held)) {
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

// same reports whether two stores hold the same atoms and no marks that could differ.
func (h *Held) same(o *Held) bool {
	return h.Same(o.Store) || h.sum == o.sum && !h.HasMarks() && !o.HasMarks()
}
