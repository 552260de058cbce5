package crdttest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"

	"pgregory.net/rapid"

	"github.com/concord-go/concord/crdt"
)

const replicas = 3

// set is a set of events.
type set map[int]bool

func (s set) with(id int) set {
	out := set{id: true}
	maps.Copy(out, s)
	return out
}

func (s set) union(o set) set {
	out := maps.Clone(s)
	maps.Copy(out, o)
	return out
}

func (s set) within(o set) bool {
	for id := range s {
		if !o[id] {
			return false
		}
	}
	return true
}

// actor is one replica of the value, with the events it should have seen.
type actor[T crdt.Value[T]] struct {
	id      int
	replica *crdt.Replica
	ms      uint64 // wall time
	last    uint64 // naive hybrid clock
	ahead   uint64 // the latest wall time
	stamp   uint64 // of the last write to a register
	value   T
	seen    set
}

// sent is a delta in flight.
type sent struct {
	delta crdt.Delta
	e     *event
}

// kept is an old value with its encoding at that time.
type kept[T any] struct {
	value T
	bytes []byte
}

// history drives three replicas and checks the laws at every step.
type history[T crdt.Value[T]] struct {
	t      *rapid.T
	typ    Type[T]
	own    bool
	oracle oracle
	actors [replicas]*actor[T]
	sent   []sent
	kept   []kept[T]
	trace  []string
	*running
}

func newHistory[T crdt.Value[T]](t *rapid.T, typ Type[T]) *history[T] {
	h := &history[T]{t: t, typ: typ, own: own(typ.Empty), oracle: oracle{spec: typ.Spec}}
	if h.typ.apply == nil {
		h.typ.apply = crdt.Apply[T]
	}
	for i := range h.actors {
		a := &actor[T]{id: i + 1, value: typ.Empty, seen: set{}}
		a.ms = uint64(rapid.IntRange(1, 5).Draw(t, "clock"))
		a.ahead = a.ms
		a.replica = crdt.NewReplicaWithClock(crdt.ReplicaID(a.id), func() uint64 { return a.ms })
		h.actors[i] = a
	}
	return h
}

func (h *history[T]) pick(what string) *actor[T] {
	return h.actors[rapid.IntRange(0, replicas-1).Draw(h.t, what)]
}

func (h *history[T]) step() {
	h.doing("step", h.trace)
	a := h.pick("at")
	switch n := rapid.IntRange(0, 10).Draw(h.t, "step"); {
	case n < 4 && h.typ.key != nil && rapid.IntRange(0, 3).Draw(h.t, "remove") == 0:
		h.remove(a)
	case n < 4:
		h.update(a, h.typ.Change)
	case n < 7 && len(h.sent) > 0:
		h.deliver(a, h.sent[rapid.IntRange(0, len(h.sent)-1).Draw(h.t, "delta")])
	case n < 9:
		from := h.pick("from")
		merged := h.merge(a.value, from.value)
		a.value, a.seen = merged, a.seen.union(from.seen)
		h.note(a, "merged with replica %d", from.id)
	default:
		a.ms = uint64(rapid.IntRange(1, 8).Draw(h.t, "clock")) // may run backwards
		a.ahead = max(a.ahead, a.ms)
		h.clock(a)
		if !h.own && rapid.Bool().Draw(h.t, "stored") {
			a.value = h.stored(a.value)
			h.note(a, "went through a replicator; clock %d", a.ms)
			break
		}
		a.value = h.decode(h.encode(a.value))
		h.note(a, "went through its encoding; clock %d", a.ms)
	}
	h.check(a)
}

// update creates one event of one to three changes.
func (h *history[T]) update(a *actor[T], change func(d *Draw, w *crdt.Writer, v *T) []Effect) {
	before, was := a.value, h.encode(a.value)
	h.keep(before)
	a.last = max(a.ms<<16, a.last+1)
	e := &event{id: len(h.oracle.events), replica: a.id, clock: a.last, before: a.seen}
	delta, err := h.change(a, func(w *crdt.Writer, v *T) error {
		for range rapid.IntRange(1, 3).Draw(h.t, "changes") {
			e.effects = append(e.effects, change(&Draw{h.t}, w, v)...)
		}
		return w.Err()
	})
	if err != nil {
		h.t.Fatalf("Change was refused: %v; it must not be\n%s", err, h.story())
	}
	h.note(a, "changed %s", describe(e.effects))
	after := h.encode(a.value)
	if bytes.Equal(was, after) {
		return // no event
	}
	h.oracle.add(e)
	a.seen = a.seen.with(e.id)
	h.same(5, after, before.Merge(a.value), "before⊔after, and after")
	h.same(5, after, a.value.Merge(before), "after⊔before, and after")
	if h.own {
		return
	}
	h.deltaLaws(before, after, delta)
	h.sent = append(h.sent, sent{h.resent(delta), e})
}

// change runs the update, without a delta for a user-defined type.
func (h *history[T]) change(a *actor[T], f func(w *crdt.Writer, v *T) error) (crdt.Delta, error) {
	if !h.own {
		return crdt.Update(a.replica, &a.value, f)
	}
	next := a.value
	if err := f(a.replica.Writer(), &next); err != nil {
		return crdt.Delta{}, err
	}
	a.value = next
	return crdt.Delta{}, nil
}

// deliver applies a delta, and checks that it is rejected exactly if something it builds on is
// missing.
func (h *history[T]) deliver(a *actor[T], d sent) {
	was, before := h.encode(a.value), a.value
	err := h.typ.apply(&a.value, d.delta)
	h.note(a, "got the delta of event %d", d.e.id)
	switch {
	case a.seen[d.e.id]:
		h.ok(7, err == nil, "a delta seen before is refused: %v", err)
		h.same(7, was, a.value, "the value, and after a delta seen before")
	case !d.e.before.within(a.seen):
		h.ok(8, errors.Is(err, crdt.ErrGap), "a delta with a gap before it: %v", err)
		h.same(8, was, a.value, "the value, and after a refused delta")
	default:
		h.ok(8, err == nil, "a delta without a gap is refused: %v", err)
		a.seen = a.seen.with(d.e.id)
		h.commutes(before, a.value, d.delta)
	}
}

// merge merges two values and checks that the operands are unchanged.
func (h *history[T]) merge(a, b T) T {
	h.keep(a)
	h.keep(b)
	out := a.Merge(b)
	h.untouched(h.kept[len(h.kept)-2:])
	return out
}

func (h *history[T]) keep(v T) { h.kept = append(h.kept, kept[T]{v, h.encode(v)}) }

func (h *history[T]) note(a *actor[T], format string, args ...any) {
	h.trace = append(h.trace, fmt.Sprintf("replica %d %s: %s", a.id, fmt.Sprintf(format, args...),
		h.text(a.value)))
}

// text formats a value for a report.
func (h *history[T]) text(v T) string {
	if h.typ.Show != nil {
		return fmt.Sprint(h.typ.Show(v))
	}
	return fmt.Sprintf("%v", v)
}

func (h *history[T]) story() string { return story(h.trace) }

func story(trace []string) string { return "history:\n  " + strings.Join(trace, "\n  ") }

func describe(effects []Effect) string {
	var out []string
	for _, x := range effects {
		switch {
		case x.Reset:
			out = append(out, fmt.Sprintf("reset %q", x.Cell))
		case x.Amount != 0:
			out = append(out, fmt.Sprintf("%q%+d", x.Cell, x.Amount))
		default:
			out = append(out, fmt.Sprintf("%q=%q", x.Cell, x.Text))
		}
	}
	return strings.Join(out, ", ")
}
