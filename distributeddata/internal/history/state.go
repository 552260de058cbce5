package history

import (
	"github.com/concord-go/concord/distributeddata/internal/sketch"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
)

// State is the state of a replica at one instant. It is immutable.
type State struct {
	Keys Keys
	Seen causal.Vector
	Sum  Sum
}

// symbol represents a key and its content in a sketch.
func (h Held) symbol(key string) uint64 {
	x := newHash()
	x.number(h.sum[0])
	x.number(h.sum[1])
	x.text(key)
	return x.Sum64()
}

// Sketch returns a sketch with one symbol for each key.
func (s State) Sketch() *sketch.Sketch {
	return sketch.New(func(yield func(uint64) bool) {
		for key, h := range s.Keys.All() {
			if !yield(h.symbol(key)) {
				return
			}
		}
	})
}

// Differing returns the keys that the symbols stand for, and all keys with marks, which
// fingerprints do not cover.
func (s State) Differing(symbols []uint64) (keys []string) {
	wanted := make(map[uint64]struct{}, len(symbols))
	for _, symbol := range symbols {
		wanted[symbol] = struct{}{}
	}
	for key, h := range s.Keys.All() {
		if _, ok := wanted[h.symbol(key)]; ok || h.HasMarks() {
			keys = append(keys, string([]byte(key)))
		}
	}
	return keys
}

// With returns the state of which s is a part, in which the rest, except the keys that the symbols
// stand for, is as in o.
func (s State) With(o State, differing []uint64) State {
	keys, sum := o.Keys, o.Sum
	if len(differing) > 0 {
		but := make(map[uint64]struct{}, len(differing))
		for _, symbol := range differing {
			but[symbol] = struct{}{}
		}
		for key, h := range o.Keys.All() {
			if _, ok := but[h.symbol(key)]; ok {
				keys, sum = keys.delete(key), sum.Minus(h.sum)
			}
		}
	}
	for key, h := range s.Keys.All() {
		if old, ok := keys.Get(key); ok {
			sum = sum.Minus(old.sum)
		}
		keys, sum = keys.put(key, h), sum.Plus(h.sum)
	}
	return State{keys, s.Seen, sum}
}

// KeyBuilder builds the content of one key from its atoms.
type KeyBuilder struct {
	atoms causal.Builder
	sum   Sum
	bytes int
}

// Add adds an atom, which follows the last one in the order of paths, then of replicas. It returns
// false, and adds nothing, if it does not.
func (b *KeyBuilder) Add(key string, a causal.Atom) bool {
	if !b.atoms.Add(a.Path, a.Leaf) {
		return false
	}
	b.sum, b.bytes = b.sum.Plus(AtomSum(key, a.Path, a.Leaf)), b.bytes+atomBytes(a.Path, a.Leaf)
	return true
}

// Mark adds a mark.
func (b *KeyBuilder) Mark(m causal.MarkAt) { b.atoms.WithMark(m.Path, m.Mark) }

// Held returns the content and resets the builder.
func (b *KeyBuilder) Held() Held {
	h := Held{b.atoms.Store(), b.sum, b.bytes}
	*b = KeyBuilder{}
	return h
}

// Builder builds a state from the contents of its keys. The zero value is ready.
type Builder struct {
	keys pmap.Builder[*Held]
	sum  Sum
}

// Add adds a key, which follows the last one.
func (b *Builder) Add(key string, h Held) {
	b.keys.Add([]byte(key), &h)
	b.sum = b.sum.Plus(h.sum)
}

// State returns the state, with the given vector.
func (b *Builder) State(seen causal.Vector) State { return State{Keys{b.keys.Map()}, seen, b.sum} }
