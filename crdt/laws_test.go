package crdt_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-go/concord/crdt"
)

// subject is a type under the laws.
type subject[T crdt.Value[T]] struct {
	empty   T
	kind    cellKind
	zero    bool                                           // the value does not tell 0 from absent
	op      func(t *rapid.T, stamp uint64) (effect, do[T]) // one operation, as effect and as deed
	observe func(T) map[string]string
}

type do[T any] func(w *crdt.Writer, v *T)

const replicas = 3

// actor is one replica of the value with what it should have seen.
type actor[T crdt.Value[T]] struct {
	replica *crdt.Replica
	ms      uint64
	last    uint64 // naive hybrid clock
	value   T
	seen    map[int]bool
}

// sent is a delta on its way.
type sent struct {
	delta crdt.Delta
	e     *opEvent
}

// kept is an old value with what its encoding was.
type kept[T any] struct {
	value T
	bytes string
}

// history drives three replicas and checks every law at every step.
type history[T crdt.Value[T]] struct {
	t      *rapid.T
	s      subject[T]
	oracle oracle
	actors [replicas]*actor[T]
	sent   []sent
	kept   []kept[T]
}

// checkLaws is the law checker: random histories of three replicas with updates, merges of states, and
// deltas that are lost, doubled and out of order.
func checkLaws[T crdt.Value[T]](t *testing.T, s subject[T]) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		h := &history[T]{t: rt, s: s, oracle: oracle{kind: s.kind}}
		for i := range h.actors {
			a := &actor[T]{value: s.empty, seen: map[int]bool{}}
			a.ms = uint64(rapid.IntRange(1, 5).Draw(rt, "clock"))
			a.replica = crdt.NewReplicaWithClock(crdt.ReplicaID(i+1), func() uint64 { return a.ms })
			h.actors[i] = a
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			h.step()
		}
		h.laws()
		h.converge()
		for _, k := range h.kept { // law 17: operands are never written
			require.Equal(rt, k.bytes, encode(rt, k.value))
		}
	})
}

func (h *history[T]) draw(name string) *actor[T] {
	return h.actors[rapid.IntRange(0, replicas-1).Draw(h.t, name)]
}

func (h *history[T]) step() {
	a := h.draw("at")
	switch rapid.IntRange(0, 9).Draw(h.t, "step") {
	case 0, 1, 2, 3:
		h.update(a)
	case 4, 5, 6:
		if len(h.sent) > 0 {
			h.deliver(a, h.sent[rapid.IntRange(0, len(h.sent)-1).Draw(h.t, "delta")])
		}
	case 7, 8:
		from := h.draw("from")
		h.keep(a.value)
		h.keep(from.value)
		a.value, a.seen = a.value.Merge(from.value), union(a.seen, from.seen)
	case 9:
		a.ms = uint64(rapid.IntRange(1, 8).Draw(h.t, "clock")) // may run backwards
		a.value = h.decode(encode(h.t, a.value))
	}
	h.check(a)
}

// update makes one event of one to three operations.
func (h *history[T]) update(a *actor[T]) {
	before, beforeBytes := a.value, encode(h.t, a.value)
	h.keep(before)
	a.last = max(a.ms<<16, a.last+1)
	e := &opEvent{id: len(h.oracle.events), replica: h.index(a), before: a.seen}
	delta, err := crdt.Update(a.replica, &a.value, func(w *crdt.Writer, v *T) error {
		for range rapid.IntRange(1, 3).Draw(h.t, "ops") {
			x, deed := h.s.op(h.t, a.last)
			deed(w, v)
			e.effects = append(e.effects, x)
		}
		return w.Err()
	})
	require.NoError(h.t, err)
	if delta.Empty() {
		require.Equal(h.t, beforeBytes, encode(h.t, a.value))
		return
	}
	h.oracle.add(e)
	a.seen = with(a.seen, e.id)
	parsed, err := crdt.ParseDelta(deltaBytes(h.t, delta))
	require.NoError(h.t, err)
	require.Equal(h.t, deltaBytes(h.t, delta), deltaBytes(h.t, parsed))
	h.sent = append(h.sent, sent{parsed, e})

	after := encode(h.t, a.value)
	require.Equal(h.t, after, encode(h.t, before.Merge(a.value)), "law 5: inflation")
	require.Equal(h.t, after, encode(h.t, a.value.Merge(before)), "law 5: inflation")
	byDelta := before
	require.NoError(h.t, crdt.Apply(&byDelta, parsed))
	require.Equal(h.t, after, encode(h.t, byDelta), "law 6: delta = state")
	require.NoError(h.t, crdt.Apply(&byDelta, parsed))
	require.Equal(h.t, after, encode(h.t, byDelta), "law 7: doubled delta")
}

// deliver hands a delta over; it is refused exactly if something it builds on is missing (law 8).
func (h *history[T]) deliver(a *actor[T], d sent) {
	old := encode(h.t, a.value)
	err := crdt.Apply(&a.value, d.delta)
	switch {
	case a.seen[d.e.id]:
		require.NoError(h.t, err)
		require.Equal(h.t, old, encode(h.t, a.value), "law 7: seen delta")
	case !subset(d.e.before, a.seen):
		require.ErrorIs(h.t, err, crdt.ErrGap, "law 8")
		require.Equal(h.t, old, encode(h.t, a.value), "law 8: refused and unchanged")
	default:
		require.NoError(h.t, err)
		a.seen = with(a.seen, d.e.id)
	}
}

// check is law 12: the value is what the specification says of what was seen.
func (h *history[T]) check(a *actor[T]) {
	want := h.oracle.value(a.seen)
	if h.s.zero {
		maps.DeleteFunc(want, func(_, v string) bool { return v == "0" })
	}
	require.Equal(h.t, want, h.s.observe(a.value), "law 12: specification")
}

// laws checks the algebra of merges on the states at hand.
func (h *history[T]) laws() {
	a, b, c := h.actors[0].value, h.actors[1].value, h.actors[2].value
	bytes := func(v T) string { return encode(h.t, v) }
	require.Equal(h.t, bytes(a.Merge(b)), bytes(b.Merge(a)), "law 1: commutative")
	require.Equal(h.t, bytes(a.Merge(b).Merge(c)), bytes(a.Merge(b.Merge(c))), "law 2: associative")
	require.Equal(h.t, bytes(a), bytes(a.Merge(a)), "law 3: idempotent")
	require.Equal(h.t, bytes(a), bytes(a.Merge(h.s.empty)), "law 4: identity")
	require.Equal(h.t, bytes(a), bytes(h.s.empty.Merge(a)), "law 4: identity")
	require.Equal(h.t, bytes(a), bytes(h.decode(bytes(a)).Merge(a)), "law 3: idempotent, built apart")
	require.Equal(h.t, bytes(a.Merge(b)), bytes(h.decode(bytes(a)).Merge(h.decode(bytes(b)))), "law 1: built apart")
}

// converge delivers what is missing, once as deltas in any order and once as states (law 11).
func (h *history[T]) converge() {
	byState := h.actors[0].value.Merge(h.actors[1].value).Merge(h.actors[2].value)
	want := encode(h.t, byState)
	for _, a := range h.actors {
		for range len(h.sent) {
			for _, d := range h.sent {
				if !a.seen[d.e.id] && subset(d.e.before, a.seen) {
					h.deliver(a, d)
				}
			}
		}
		h.check(a)
		require.Equal(h.t, want, encode(h.t, a.value), "law 11: equal bytes")
	}
}

func (h *history[T]) keep(v T) { h.kept = append(h.kept, kept[T]{v, encode(h.t, v)}) }

func (h *history[T]) index(a *actor[T]) int {
	for i := range h.actors {
		if h.actors[i] == a {
			return i
		}
	}
	panic("no actor")
}

// decode is law 15: what was encoded decodes to what encodes the same.
func (h *history[T]) decode(b string) T {
	v, err := h.s.empty.Decode([]byte(b))
	require.NoError(h.t, err)
	require.Equal(h.t, b, encode(h.t, v), "law 15: decode∘encode")
	return v
}

func encode[T crdt.Value[T]](t require.TestingT, v T) string {
	b, err := v.AppendBinary(nil)
	require.NoError(t, err)
	return string(b)
}

func deltaBytes(t require.TestingT, d crdt.Delta) []byte {
	b, err := d.AppendBinary(nil)
	require.NoError(t, err)
	return b
}

func union(a, b map[int]bool) map[int]bool {
	out := with(a)
	maps.Copy(out, b)
	return out
}

func subset(a, b map[int]bool) bool {
	for id := range a {
		if !b[id] {
			return false
		}
	}
	return true
}

func drawText(t *rapid.T, what string) string {
	return fmt.Sprintf("%c", rapid.IntRange('a', 'c').Draw(t, what))
}
