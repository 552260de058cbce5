package main

import (
	"fmt"
	"iter"

	"github.com/concord-go/concord/crdt"
)

// guests is a two-phase set: an element that was removed once stays out forever, so a remove wins
// over every earlier, concurrent and later add. It consists of two grow-only sets, which are never
// pruned.
type guests struct{ added, removed crdt.GSet[string] }

// Add adds elements that were never removed.
func (g *guests) Add(w *crdt.Writer, names ...string) { g.added.Add(w, names...) }

// Remove removes elements forever.
func (g *guests) Remove(w *crdt.Writer, names ...string) { g.removed.Add(w, names...) }

// Contains reports whether the name is in the set.
func (g guests) Contains(name string) bool {
	return g.added.Contains(name) && !g.removed.Contains(name)
}

// All yields the names in order.
func (g guests) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range g.added.All() {
			if !g.removed.Contains(name) && !yield(name) {
				return
			}
		}
	}
}

func (g guests) String() string {
	var names []string
	for name := range g.All() {
		names = append(names, name)
	}
	return fmt.Sprint(names)
}

// Merge merges part by part.
func (g guests) Merge(o guests) guests {
	return guests{g.added.Merge(o.added), g.removed.Merge(o.removed)}
}

// AppendBinary encodes part by part.
func (g guests) AppendBinary(dst []byte) ([]byte, error) {
	dst, err := appendPart(dst, g.added)
	if err != nil {
		return dst, err
	}
	return appendPart(dst, g.removed)
}

// Decode decodes part by part.
func (g guests) Decode(src []byte) (guests, error) {
	added, src, err := cutPart(src, g.added)
	if err != nil {
		return g, err
	}
	removed, src, err := cutPart(src, g.removed)
	if err != nil {
		return g, err
	}
	return guests{added, removed}, end(src)
}
