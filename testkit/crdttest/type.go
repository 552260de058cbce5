package crdttest

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/concord-go/concord/crdt"
)

// Type describes the type to test.
type Type[T crdt.Value[T]] struct {
	// Empty is the empty value, with its codecs. The zero value suffices if there are none.
	Empty T
	// Change makes at most one random change to v, using w and random choices from d. It returns
	// the effects for Spec and for the history in a failure report, or nil if it changed nothing.
	Change func(d *Draw, w *crdt.Writer, v *T) []Effect
	// Show returns the contents of the value, as texts by cell name. Values with equal bytes must
	// show the same. If Show is nil, values are compared only by their bytes.
	Show func(v T) map[string]string
	// Spec returns what Show must return. If Spec is nil, contents are not checked.
	Spec Spec
	// MaxBytes returns the maximum length of the encoding of a value with the given number of
	// cells, changed by three replicas. If it is nil, the length is unbounded.
	MaxBytes func(cells int) int

	apply func(v *T, d crdt.Delta) error // crdt.Apply, unless a test of this package plants a bug
	key   *inMapKey[T]                   // set for a value tested as part of a map
}

// Draw makes random choices and prefers small ones, so that failures are as short as possible.
type Draw struct{ t *rapid.T }

// Int draws a number from lo to hi. what names it in failure reports.
func (d *Draw) Int(what string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(d.t, what) }

// Bool draws true or false.
func (d *Draw) Bool(what string) bool { return rapid.Bool().Draw(d.t, what) }

// Letter draws one of a, b and c, so that collisions are frequent.
func (d *Draw) Letter(what string) string { return string(rune('a' + d.Int(what, 0, 2))) }

// Run checks the laws of the type.
func Run[T crdt.Value[T]](t *testing.T, typ Type[T]) {
	t.Helper()
	var r running
	t.Run("alone", func(t *testing.T) { check(t, typ, &r) })
	t.Run("in a map", func(t *testing.T) { check(t, inMap(typ), &r) })
	t.Run("removed from a map", func(t *testing.T) { check(t, removed(inMap(typ)), &r) })
}

// own reports whether v has a user-defined type, without deltas.
func own[T crdt.Value[T]](v T) bool {
	_, err := crdt.Update(crdt.NewReplica(1), &v, func(*crdt.Writer, *T) error { return nil })
	return errors.Is(err, crdt.ErrInvalid)
}

// inMap returns the type as a value in a map.
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

// inMapKey removes the value from its map.
type inMapKey[T any] struct {
	remove func(w *crdt.Writer, m *T)
	there  func(m T) bool
}

// removed returns the type in a map whose key is removed now and then. Types differ in what a
// removal removes together with a concurrent change, so there is no specification.
func removed[T crdt.Value[T]](typ Type[crdt.ORMap[string, T]]) Type[crdt.ORMap[string, T]] {
	const key = "k"
	typ.Spec = nil
	typ.key = &inMapKey[crdt.ORMap[string, T]]{
		remove: func(w *crdt.Writer, m *crdt.ORMap[string, T]) { m.Remove(w, key) },
		there:  func(m crdt.ORMap[string, T]) bool { return m.Contains(key) || m.Len() > 0 },
	}
	return typ
}

// check runs the histories. They run in a goroutine of their own, because a method of the type may
// never return. Then no more histories run.
func check[T crdt.Value[T]](t rapid.TB, typ Type[T], r *running) {
	t.Helper()
	if r.over {
		return
	}
	r.doing("start", nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		rapid.Check(t, func(t *rapid.T) {
			h := newHistory(t, typ)
			h.running = r
			for range rapid.IntRange(1, 25).Draw(t, "steps") {
				h.step()
			}
			h.doing("check of the laws at the end", h.trace)
			h.algebra()
			h.garbage()
			h.strange()
			h.converge()
			h.untouched(h.kept)
		})
	}()
	if hung := r.wait(done, limitOf(t)); hung != "" {
		t.Fatalf("%T does not return: %s", typ.Empty, hung)
	}
}
