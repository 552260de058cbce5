package crdt_test

import (
	"fmt"
	"strings"
)

// The oracle says what a value must be from the operations alone and which of them were known to
// which: no dots, no vectors, no stores.
//
// Every operation comes down to effects on cells. A cell is one place in a value, such as an element
// of a set or the register at a key of a map. A put is visible unless it is before an effect that
// takes it away: a reset of a prefix of its cell, or, in a register, another put. The value follows
// from the visible puts.

type cellKind int

const (
	present  cellKind = iota // a set: the cell is in
	counted                  // a counter: the sum of the amounts
	register                 // the put with the largest (stamp, replica)
)

// effect is what an operation does to cells.
type effect struct {
	cell   string // of a reset, the prefix of cells it takes away
	reset  bool
	amount int64
	text   string
	stamp  uint64 // of a register, by the clock; the oracle raises it over what was visible
}

// opEvent is one update: its effects in order and all events that were known when it was made.
type opEvent struct {
	id, replica int
	effects     []effect
	before      map[int]bool
}

// oracle holds every event of a history.
type oracle struct {
	kind   cellKind
	events []*opEvent
	stamps map[[2]int]uint64 // of register puts, by event and index of effect
}

// put is one put effect.
type put struct {
	e *opEvent
	i int
}

func (p put) effect() *effect { return &p.e.effects[p.i] }

// before reports whether p was known to the effect j of event e.
func (p put) before(e *opEvent, j int) bool {
	if p.e == e {
		return p.i < j
	}
	return e.before[p.e.id]
}

// visible returns the puts that nothing in seen takes away.
func (o *oracle) visible(seen map[int]bool) (out []put) {
	for _, e := range o.events {
		if !seen[e.id] {
			continue
		}
		for i := range e.effects {
			if p := (put{e, i}); !p.effect().reset && !o.gone(p, seen) {
				out = append(out, p)
			}
		}
	}
	return out
}

func (o *oracle) gone(p put, seen map[int]bool) bool {
	for _, e := range o.events {
		if !seen[e.id] {
			continue
		}
		for j := range e.effects {
			if x := &e.effects[j]; p.before(e, j) && o.takes(x, p.effect()) {
				return true
			}
		}
	}
	return false
}

func (o *oracle) takes(x, p *effect) bool {
	if x.reset {
		return strings.HasPrefix(p.cell, x.cell)
	}
	return o.kind == register && x.cell == p.cell
}

// add takes a new event into the history.
func (o *oracle) add(e *opEvent) {
	o.events = append(o.events, e)
	if o.kind != register {
		return
	}
	if o.stamps == nil {
		o.stamps = map[[2]int]uint64{}
	}
	for i := range e.effects {
		x := &e.effects[i]
		if x.reset {
			continue
		}
		stamp := x.stamp
		for _, p := range o.known(e, i) {
			if p.effect().cell == x.cell {
				stamp = max(stamp, o.stamps[[2]int{p.e.id, p.i}]+1)
			}
		}
		o.stamps[[2]int{e.id, i}] = stamp
	}
}

// known returns the puts that are visible to the effect i of e just before it.
func (o *oracle) known(e *opEvent, i int) []put {
	cut := &opEvent{id: e.id, replica: e.replica, effects: e.effects[:i], before: e.before}
	past := &oracle{kind: o.kind, events: append(o.events[:len(o.events)-1:len(o.events)-1], cut)}
	return past.visible(with(e.before, e.id))
}

// value returns cell → text for whoever has seen these events.
func (o *oracle) value(seen map[int]bool) map[string]string {
	out := map[string]string{}
	sums := map[string]int64{}
	best := map[string]put{}
	for _, p := range o.visible(seen) {
		x := p.effect()
		switch o.kind {
		case present:
			out[x.cell] = "in"
		case counted:
			sums[x.cell] += x.amount
			out[x.cell] = fmt.Sprint(sums[x.cell])
		case register:
			if b, ok := best[x.cell]; !ok || o.wins(p, b) {
				best[x.cell], out[x.cell] = p, x.text
			}
		}
	}
	return out
}

func (o *oracle) wins(a, b put) bool {
	sa, sb := o.stamps[[2]int{a.e.id, a.i}], o.stamps[[2]int{b.e.id, b.i}]
	return sa > sb || sa == sb && a.e.replica > b.e.replica
}

// with returns a copy of the set with id.
func with(set map[int]bool, ids ...int) map[int]bool {
	out := make(map[int]bool, len(set)+len(ids))
	for id := range set {
		out[id] = true
	}
	for _, id := range ids {
		out[id] = true
	}
	return out
}
