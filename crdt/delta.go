package crdt

import (
	"fmt"

	"github.com/concord-go/concord/internal/causal"
)

// Delta is the change made by one [Update]. It is a value of a few pointers and is safe for
// concurrent reads. The zero value changes nothing.
type Delta struct{ event causal.Event }

// Empty reports whether the delta changes nothing.
func (d Delta) Empty() bool { return d.event.N == 0 }

// Update changes a value used alone, as one event of r, and returns the delta for [Apply] on other
// replicas of the value. If change or a mutator fails, Update returns the error and leaves *v
// unchanged. A change that does nothing creates no event, and its delta is empty.
//
// User-defined types have no deltas: Update returns ErrInvalid for them.
func Update[T Value[T]](r *Replica, v *T, change func(w *Writer, v *T) error) (d Delta, err error) {
	was := *v
	h, ok := heldBy(v)
	if !ok {
		return d, fmt.Errorf("%w: %T", errNoDelta, *v)
	}
	var u struct { // one allocation
		Writer
		trail
	}
	w := &u.Writer
	*w, w.trail = r.writer(), &u.trail
	defer func() {
		if w.done = true; d.Empty() { // refused, nothing changed, or a panic
			*v = was
		}
	}()
	at, err := gathered(h)
	if err != nil {
		return d, err
	}
	start := at.alone()
	start.line = loaded
	bindTo(h, start)
	base, seen := at.store, at.seen
	if seen.Covers(w.dot) {
		return d, errReplica
	}
	w.trail.begin(base)
	if err := change(w, v); err != nil {
		return d, err
	}
	if w.err != nil {
		return d, w.err
	}
	if _, err := gathered(h); err != nil {
		return d, err
	}
	if at.line != loaded {
		return d, errForeign
	}
	c, err := w.trail.change(base, at.store, w.dot)
	if err != nil {
		return d, fmt.Errorf("%w: %w", errForeign, err)
	}
	if !c.Empty() {
		end := *at
		end.seen, end.line = at.seen.With(w.dot), 0
		bindTo(h, end)
		d = Delta{causal.Event{Dot: w.dot, Deps: seen, Change: c}}
	}
	return d, nil
}

// Apply applies a change made elsewhere to a value used alone. Its cost is proportional to the
// change. Apply does nothing if *v has already seen the delta, either directly or in a state merged
// into *v. It returns [ErrGap] if the delta builds on others that *v has not seen, and [ErrType] if
// the delta belongs to another type; *v is then unchanged.
func Apply[T Value[T]](v *T, d Delta) error {
	next := *v
	h, ok := heldBy(&next)
	if !ok {
		return fmt.Errorf("%w: %T", errNoDelta, *v)
	}
	at, err := gathered(h)
	if err != nil {
		return err
	}
	*at = at.alone()
	switch e := &d.event; {
	case d.Empty() || at.seen.Covers(e.Dot):
		return nil
	case !e.Deps.Leq(at.seen):
		return fmt.Errorf("%w: needs %v, has %v", ErrGap, e.Deps, at.seen)
	}
	if t, other := d.event.OtherKind(h.tag()); other {
		return fmt.Errorf("%w: delta of %v, wanted %v", ErrType, t, h.tag())
	}
	at.store = at.store.Apply(d.event.Change, d.event.Deps, at.seen)
	at.seen = at.seen.With(d.event.Dot)
	bindTo(h, *at)
	*v = next
	return nil
}

// AppendBinary appends the canonical encoding. An empty delta appends nothing.
func (d Delta) AppendBinary(dst []byte) ([]byte, error) {
	if d.Empty() {
		return dst, nil
	}
	return causal.AppendEvent(dst, d.event)
}

// ParseDelta decodes bytes written by AppendBinary. It returns [ErrMalformed], [ErrVersion] or
// [ErrTooLarge] for other bytes, and never panics.
func ParseDelta(src []byte) (Delta, error) {
	if len(src) == 0 {
		return Delta{}, nil
	}
	e, err := causal.ParseEvent(src)
	return Delta{e}, err
}

func (d Delta) String() string {
	if d.Empty() {
		return "delta: nothing"
	}
	return fmt.Sprintf("delta %v: %d added, %d removed, %d reset", d.event.Dot,
		len(d.event.Adds), len(d.event.Removes), len(d.event.Marks))
}
