package history

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"
)

// SetOp adds one element to a set that only grows, or reads the set.
type SetOp[E cmp.Ordered] struct {
	Add     bool
	Element E
}

func (o SetOp[E]) String() string {
	if o.Add {
		return fmt.Sprintf("add %v", o.Element)
	}
	return "read"
}

// SetResult is the answer to a read. An add that has ended was acknowledged.
type SetResult[E cmp.Ordered] struct{ Elements []E }

func (r SetResult[E]) String() string { return fmt.Sprint(r.Elements) }

// SetReport is the result for all elements. Each list is in order.
type SetReport[E cmp.Ordered] struct {
	Attempted, Acknowledged, Reads int
	// Lost are known elements that are missing at the end: no read that began after the last read
	// without the element contains it.
	Lost []E
	// Stale are known elements that a read missed although a later one contains them. Majority
	// reads and writes have none.
	Stale []E
	// Phantoms are elements that were read without ever having been added, or before they were
	// added.
	Phantoms []E
	// Doubled occur twice in one read.
	Doubled []E
	// Lag is the longest time after which a known element was still missing from a new read.
	Lag time.Duration
}

// element is the state of one element. It is known once its add was acknowledged or a read
// contained it, whichever was first.
type element struct {
	began, known int64
	knownAt      time.Duration
	shown        int64 // begin of the last read that contains it
	missed       int64 // begin of the last read that began when it was known, and misses it
}

// Set judges adds and reads. A value that joins the adds of replicas is correct if no element is
// lost and none is a phantom. Whether Stale may have elements depends on the consistency levels of
// writes and reads.
func Set[E cmp.Ordered](ops []Operation[SetOp[E], SetResult[E]]) SetReport[E] {
	var r SetReport[E]
	all := map[E]*element{}
	for _, o := range ops {
		if !o.Input.Add {
			continue
		}
		r.Attempted++
		e := all[o.Input.Element]
		if e == nil {
			e = &element{began: o.Call, known: Never}
			all[o.Input.Element] = e
		}
		if o.Output.Known {
			r.Acknowledged++
			e.learn(o.Return, o.Returned)
		}
	}
	reads := slices.DeleteFunc(slices.Clone(ops), func(o Operation[SetOp[E], SetResult[E]]) bool {
		return o.Input.Add || !o.Output.Known
	})
	r.Reads = len(reads)
	for _, o := range reads {
		r.sight(all, o)
	}
	for _, o := range reads {
		r.miss(all, o)
	}
	for x, e := range all {
		switch {
		case e.missed == 0:
		case e.missed > e.shown:
			r.Lost = append(r.Lost, x)
		default:
			r.Stale = append(r.Stale, x)
		}
	}
	for _, list := range []*[]E{&r.Lost, &r.Stale, &r.Phantoms, &r.Doubled} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return r
}

func (e *element) learn(at int64, when time.Duration) {
	if at < e.known {
		e.known, e.knownAt = at, when
	}
}

// sight records the elements that a read contains.
func (r *SetReport[E]) sight(all map[E]*element, o Operation[SetOp[E], SetResult[E]]) {
	seen := map[E]bool{}
	for _, x := range o.Output.Value.Elements {
		if seen[x] {
			r.Doubled = append(r.Doubled, x)
		}
		seen[x] = true
		e := all[x]
		if e == nil || o.Return < e.began {
			r.Phantoms = append(r.Phantoms, x)
			continue
		}
		e.learn(o.Return, o.Returned)
		e.shown = max(e.shown, o.Call)
	}
}

// miss records the elements that a read should contain but does not.
func (r *SetReport[E]) miss(all map[E]*element, o Operation[SetOp[E], SetResult[E]]) {
	for x, e := range all {
		if e.known < o.Call && !slices.Contains(o.Output.Value.Elements, x) {
			e.missed = max(e.missed, o.Call)
			r.Lag = max(r.Lag, o.Called-e.knownAt)
		}
	}
}

// CheckSet fails the test if an element was lost, doubled, or is a phantom. If fresh is set, it
// also fails if a read missed an element that was known when the read began.
func CheckSet[E cmp.Ordered](t testing.TB, ops []Operation[SetOp[E], SetResult[E]],
	fresh bool) SetReport[E] {
	t.Helper()
	r := Set(ops)
	if len(r.Lost)+len(r.Phantoms)+len(r.Doubled) > 0 || fresh && len(r.Stale) > 0 {
		t.Errorf("history: not a growing set: %+v\n%s", r, ending(Story(ops)))
	}
	return r
}
