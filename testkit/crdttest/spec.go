package crdttest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Effect is what a change does to the cells of a value. A cell is one place in it, such as an element
// of a set or the register at a key of a map; names are the test's own.
type Effect struct {
	Cell   string // of a reset, the prefix of the cells it takes away
	Reset  bool   // takes away the puts that it knew
	Over   bool   // a put that takes away the puts to its cell that it knew
	Text   string
	Amount int64
}

// Put returns the effect of a change that puts text into a cell.
func Put(cell, text string) []Effect { return []Effect{{Cell: cell, Text: text}} }

// Set returns the effect of a change that puts text into a cell in the place of what it knew there.
func Set(cell, text string) []Effect { return []Effect{{Cell: cell, Text: text, Over: true}} }

// Count returns the effect of a change that adds to a cell.
func Count(cell string, n int64) []Effect { return []Effect{{Cell: cell, Amount: n}} }

// Reset returns the effect of a change that takes away all it knew in the cells that begin with prefix.
func Reset(prefix string) []Effect { return []Effect{{Cell: prefix, Reset: true}} }

// Spec says what a value is from the changes alone and which of them knew of which: no dots, no
// vectors, no stores. A put is visible unless a change that knew of it takes it away: a reset of a
// prefix of its cell or a [Set] of its cell. Spec returns what a cell shows from its visible puts, of
// which there is at least one, or false if it shows nothing. One that tells cells apart by their names
// may hand each on to another.
type Spec func(puts []Visible) (text string, shows bool)

// Visible is a put that nothing takes away.
type Visible struct {
	Effect
	Replica int
	Clock   uint64 // the hybrid time of the change
	Stamp   uint64 // the same, raised over the stamps of the puts to the cell that were visible to it
}

// The specifications of the types of package crdt.
var (
	// Present: a [Put] wins over a concurrent reset. Sets in which adds win.
	Present Spec = func([]Visible) (string, bool) { return "in", true }
	// Sum: every amount counts. Counters.
	Sum Spec = func(puts []Visible) (string, bool) {
		var n int64
		for _, p := range puts {
			n += p.Amount
		}
		return strconv.FormatInt(n, 10), true
	}
	// Last: the [Set] with the largest stamp, then of the largest replica. Registers with a clock.
	Last Spec = func(puts []Visible) (string, bool) {
		return slices.MaxFunc(puts, func(a, b Visible) int {
			return cmp.Or(cmp.Compare(a.Stamp, b.Stamp), cmp.Compare(a.Replica, b.Replica))
		}).Text, true
	}
	// First: the put with the smallest clock, then of the largest replica.
	First Spec = func(puts []Visible) (string, bool) {
		return slices.MinFunc(puts, func(a, b Visible) int {
			return cmp.Or(cmp.Compare(a.Clock, b.Clock), cmp.Compare(b.Replica, a.Replica))
		}).Text, true
	}
	// Unanimous: in unless a visible [Set] has the text [No]. Remove wins.
	Unanimous Spec = func(puts []Visible) (string, bool) {
		return "in", !slices.ContainsFunc(puts, func(p Visible) bool { return p.Text == No })
	}
	// Every: the texts of all [Set], in order, each once. Registers that keep concurrent writes.
	Every Spec = func(puts []Visible) (string, bool) {
		var texts []string
		for _, p := range puts {
			texts = append(texts, p.Text)
		}
		slices.Sort(texts)
		return strings.Join(slices.Compact(texts), " "), true
	}
	// Largest and Smallest: of the amounts.
	Largest  Spec = func(puts []Visible) (string, bool) { return amount(slices.MaxFunc(puts, byAmount)) }
	Smallest Spec = func(puts []Visible) (string, bool) { return amount(slices.MinFunc(puts, byAmount)) }
)

// No is the text of a put that says that its element is gone.
const No = "no"

func byAmount(a, b Visible) int { return cmp.Compare(a.Amount, b.Amount) }

func amount(p Visible) (string, bool) { return strconv.FormatInt(p.Amount, 10), true }

// event is one update: its effects in order and all events that were known when it was made.
type event struct {
	id, replica int
	clock       uint64
	effects     []Effect
	stamps      []uint64 // of the effects
	before      set
}

// oracle holds every event of a history.
type oracle struct {
	spec   Spec
	events []*event
}

// put is one effect that is not a reset.
type put struct {
	e *event
	i int
}

func (p put) effect() Effect { return p.e.effects[p.i] }

// before reports whether p was known to the effect j of event e.
func (p put) before(e *event, j int) bool {
	if p.e == e {
		return p.i < j
	}
	return e.before[p.e.id]
}

// add takes a new event into the history and stamps its puts.
func (o *oracle) add(e *event) {
	o.events = append(o.events, e)
	e.stamps = make([]uint64, len(e.effects))
	for i, x := range e.effects {
		e.stamps[i] = e.clock
		for _, p := range o.visible(e.before.with(e.id), e, i) {
			if p.effect().Cell == x.Cell && !x.Reset {
				e.stamps[i] = max(e.stamps[i], p.e.stamps[p.i]+1)
			}
		}
	}
}

// visible returns the puts that nothing in seen takes away; of the event cut only the effects before i
// count.
func (o *oracle) visible(seen set, cut *event, i int) (out []put) {
	for _, e := range o.events {
		if !seen[e.id] {
			continue
		}
		for j, x := range e.effects {
			if e == cut && j >= i {
				break
			}
			if p := (put{e, j}); !x.Reset && !o.gone(p, seen, cut, i) {
				out = append(out, p)
			}
		}
	}
	return out
}

func (o *oracle) gone(p put, seen set, cut *event, i int) bool {
	for _, e := range o.events {
		if !seen[e.id] {
			continue
		}
		for j, x := range e.effects {
			if e == cut && j >= i {
				break
			}
			if p.before(e, j) && o.takes(x, p.effect()) {
				return true
			}
		}
	}
	return false
}

func (o *oracle) takes(x, p Effect) bool {
	if x.Reset {
		return strings.HasPrefix(p.Cell, x.Cell)
	}
	return x.Over && x.Cell == p.Cell
}

// value returns what whoever has seen these events must show.
func (o *oracle) value(seen set) map[string]string {
	cells := map[string][]Visible{}
	for _, p := range o.visible(seen, nil, 0) {
		x := p.effect()
		cells[x.Cell] = append(cells[x.Cell], Visible{x, p.e.replica, p.e.clock, p.e.stamps[p.i]})
	}
	out := map[string]string{}
	for cell, puts := range cells {
		if text, ok := o.spec(puts); ok {
			out[cell] = text
		}
	}
	return out
}
