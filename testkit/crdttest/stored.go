package crdttest

import (
	"bytes"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// stored returns the value as a replicator shows it after it has read the atoms from a disk or has
// received them as a whole state. It must not differ from the value in anything that it shows.
func (h *history[T]) stored(v T) T {
	b := h.encode(v)
	s, seen, err := causal.ParseValue(b)
	h.ok(15, err == nil, "AppendBinary wrote %x, which is no state: %v", b, err)
	var atoms causal.Builder
	for path, e := range s.Prefix("") {
		for l := range e.All() {
			h.ok(15, atoms.Add(path, l), "the atoms of %x are not in order", b)
		}
	}
	for path, m := range s.Marks() {
		atoms.WithMark(path, m)
	}
	loaded := h.typ.Empty
	err = hosted.Load(&loaded, atoms.Store(), seen)
	h.ok(15, err == nil, "a state of the type is of another one: %v", err)
	out := loaded.Merge(h.typ.Empty) // as a value used alone
	if again := h.encode(out); !bytes.Equal(b, again) {
		h.ok(15, false, "a value and what a replicator loads of it differ\nfirst  %x\nsecond %x", b,
			again)
	}
	return out
}
