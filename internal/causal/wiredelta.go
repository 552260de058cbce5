package causal

import (
	"fmt"

	"github.com/concord-go/concord/internal/field"
)

// Event is one event on one value, in the form exchanged between values used alone.
type Event struct {
	Dot
	Deps Vector // the events that the origin had seen before
	Change
}

// AppendEvent appends the canonical encoding of an event: the message ValueDelta of
// proto/crdt.proto. The change must be one returned by Between, without Clear.
func AppendEvent(dst []byte, e Event) ([]byte, error) {
	t := vectorTable(e.Deps)
	t.add(e.Replica)
	for _, a := range e.Removes {
		t.add(a.Replica)
	}
	for _, m := range e.Marks {
		t.add(m.By.Replica)
	}
	if len(t.ids) > MaxReplicas || len(e.Adds)+len(e.Removes)+len(e.Marks) > MaxPaths {
		return dst, fmt.Errorf("%w: delta", ErrTooLarge)
	}
	start := len(dst)
	b := field.Number(dst, 1, wireVersion)
	b = t.appendTo(b, e.Deps)
	b = field.Number(b, 4, t.index(e.Replica))
	b = field.Number(b, 5, e.N)
	var at int
	for _, a := range e.Adds {
		b, at = field.Begin(b, 6)
		b = field.End(AppendAdd(b, a.Path, a.Payload), at)
	}
	for _, a := range e.Removes {
		b, at = field.Begin(b, 7)
		b = field.End(AppendName(b, a.Path, t.index(a.Replica), a.N), at)
	}
	b = appendMarks(b, 8, &t, func(yield func(string, Mark) bool) {
		for _, m := range e.Marks {
			if !yield(m.Path, m.Mark) {
				return
			}
		}
	})
	if len(b)-start > MaxState {
		return dst, fmt.Errorf("%w: delta of %d bytes", ErrTooLarge, len(b)-start)
	}
	return b, nil
}

// ParseEvent decodes the encoding written by AppendEvent and accepts no other form. Its errors are
// those of ParseValue.
func ParseEvent(src []byte) (e Event, err error) {
	if len(src) > MaxState {
		return e, fmt.Errorf("%w: delta of %d bytes", ErrTooLarge, len(src))
	}
	r := reader{b: src}
	if err := r.version(); err != nil {
		return e, err
	}
	t, deps, err := readTable(&r)
	if err != nil {
		return e, err
	}
	e.Deps = deps
	e.Dot = t.dot(&r, 4)
	if r.bad || deps.Covers(e.Dot) {
		return Event{}, fmt.Errorf("%w: event", ErrMalformed)
	}
	if e.Adds, err = readAdds(&r, e.Dot); err != nil {
		return Event{}, err
	}
	if e.Removes, err = readRemoves(&r, &t, deps); err != nil {
		return Event{}, err
	}
	marks, err := readMarks(&r, 8, &t)
	if err != nil {
		return Event{}, err
	}
	for path, m := range marks.All() {
		e.Marks = append(e.Marks, MarkAt{Clone(path), m})
	}
	if err := r.done("delta"); err != nil {
		return Event{}, err
	}
	if err := t.allUsed(); err != nil {
		return Event{}, err
	}
	return e, nil
}

func readAdds(r *reader, d Dot) (adds []Atom, err error) {
	for last := ""; ; {
		ar, ok := r.message(6)
		if !ok {
			return adds, nil
		}
		a := Atom{Path: string(ar.bytes(1)), Leaf: Leaf{Dot: d, Payload: string(ar.bytes(2))}}
		if a.Path <= last || len(a.Path) > MaxPath {
			ar.fail()
		}
		if err := ar.done("added atom"); err != nil {
			return nil, err
		}
		if err := CheckAtom(a.Path, a.Leaf); err != nil {
			return nil, err
		}
		if adds, last = append(adds, a), a.Path; len(adds) > MaxPaths {
			return nil, fmt.Errorf("%w: delta", ErrTooLarge)
		}
	}
}

// readRemoves reads removals. It accepts only removals of atoms that the origin had seen.
func readRemoves(r *reader, t *table, deps Vector) (removes []Atom, err error) {
	for {
		rr, ok := r.message(7)
		if !ok {
			return removes, nil
		}
		a := Atom{Path: string(rr.bytes(1))}
		a.Dot = t.dot(&rr, 2)
		if a.Path == "" || !deps.Covers(a.Dot) || len(a.Path) > MaxPath ||
			len(removes) > 0 && !follows(removes[len(removes)-1], a) {
			rr.fail()
		}
		if err := rr.done("removed atom"); err != nil {
			return nil, err
		}
		if removes = append(removes, a); len(removes) > MaxPaths {
			return nil, fmt.Errorf("%w: delta", ErrTooLarge)
		}
	}
}

// follows reports whether b may come after a in a list of removals.
func follows(a, b Atom) bool {
	return a.Path < b.Path || a.Path == b.Path && a.Replica < b.Replica
}

// OtherKind returns a tag in the change that differs from want.
func (c Change) OtherKind(want Tag) (other Tag, found bool) {
	for _, a := range c.Adds {
		if t := Tag(a.Path[0]); t != want {
			return t, true
		}
	}
	for _, a := range c.Removes {
		if t := Tag(a.Path[0]); t != want {
			return t, true
		}
	}
	for _, m := range c.Marks {
		if t := Tag(m.Path[0]); t != want {
			return t, true
		}
	}
	return 0, false
}
