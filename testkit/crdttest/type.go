package crdttest

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/concord-go/concord/crdt"
)

// Type says what to test and how.
type Type[T crdt.Value[T]] struct {
	// Empty is the empty value, with its codecs. The zero value if there are none.
	Empty T
	// Change makes one random change to v, or none, with w and what it draws from d. The effects it
	// returns are for Spec and for the history in a failure; nil if it changed nothing.
	Change func(d *Draw, w *crdt.Writer, v *T) []Effect
	// Show returns what is in the value, as texts by the names of cells. Values with equal bytes must
	// show the same. Nil: values are compared by their bytes alone.
	Show func(v T) map[string]string
	// Spec says what Show must return; nil says nothing.
	Spec Spec
	// MaxBytes returns how long the encoding of a value with so many cells may be, when three replicas
	// changed it. Nil: any length.
	MaxBytes func(cells int) int

	apply func(v *T, d crdt.Delta) error // crdt.Apply, unless a test of this package plants a bug
	key   *inMapKey[T]                   // of the value that is tested as part of a map
}

// Draw makes random choices, and small ones where it can, so that a failure is as short as it gets.
type Draw struct{ t *rapid.T }

// Int draws a number from lo to hi. what names it in the report of a failure.
func (d *Draw) Int(what string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(d.t, what) }

// Bool draws yes or no.
func (d *Draw) Bool(what string) bool { return rapid.Bool().Draw(d.t, what) }

// Letter draws one of a, b and c: few enough to meet again.
func (d *Draw) Letter(what string) string { return string(rune('a' + d.Int(what, 0, 2))) }

// Run checks the laws of the type.
func Run[T crdt.Value[T]](t *testing.T, typ Type[T]) {
	t.Helper()
	t.Run("alone", func(t *testing.T) { check(t, typ) })
	t.Run("in a map", func(t *testing.T) { check(t, inMap(typ)) })
	t.Run("removed from a map", func(t *testing.T) { check(t, removed(inMap(typ))) })
}

// own reports whether v is of an own type, without deltas.
func own[T crdt.Value[T]](v T) bool {
	_, err := crdt.Update(crdt.NewReplica(1), &v, func(*crdt.Writer, *T) error { return nil })
	return errors.Is(err, crdt.ErrNoDelta)
}

// inMap is the type as a value in a map.
func inMap[T crdt.Value[T]](typ Type[T]) Type[crdt.ORMap[string, T]] {
	const key = "k"
	in := Type[crdt.ORMap[string, T]]{
		Empty: crdt.NewORMap[string](nil, typ.Empty),
		Spec:  typ.Spec,
		Change: func(d *Draw, w *crdt.Writer, m *crdt.ORMap[string, T]) (effects []Effect) {
			m.Update(w, key, func(v *T) { effects = typ.Change(d, w, v) })
			return effects
		},
	}
	if typ.Show != nil {
		in.Show = func(m crdt.ORMap[string, T]) map[string]string {
			v, _ := m.Get(key)
			return typ.Show(v)
		}
	}
	return in
}

// inMapKey says how the value is taken out of its map.
type inMapKey[T any] struct {
	remove func(w *crdt.Writer, m *T)
	there  func(m T) bool
}

// removed is the type in a map whose key is removed now and then. What a removal takes away with which
// concurrent change differs from type to type, so the specification is left out.
func removed[T crdt.Value[T]](typ Type[crdt.ORMap[string, T]]) Type[crdt.ORMap[string, T]] {
	const key = "k"
	typ.Spec = nil
	typ.key = &inMapKey[crdt.ORMap[string, T]]{
		remove: func(w *crdt.Writer, m *crdt.ORMap[string, T]) { m.Remove(w, key) },
		there:  func(m crdt.ORMap[string, T]) bool { return m.Contains(key) || m.Len() > 0 },
	}
	return typ
}

// check draws histories.
func check[T crdt.Value[T]](t rapid.TB, typ Type[T]) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, typ)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			h.step()
		}
		h.algebra()
		h.garbage()
		h.strange()
		h.converge()
		h.untouched(h.kept)
	})
}
