package crdttest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Effect is the effect of a change on the cells of a value. A cell is one place in the value, such
// as an element of a set or the register at a key of a map. The test chooses the names of cells.
type Effect struct {
	Cell   string // for a reset: the prefix of the cells it clears
	Reset  bool   // removes the puts it knew
	Over   bool   // a put that removes the puts to its cell that it knew
	Text   string
	Amount int64
}

// Put returns the effect of a change that puts text into a cell.
func Put(cell, text string) []Effect { return []Effect{{Cell: cell, Text: text}} }

// Set returns the effect of a change that replaces what it knew of a cell with text.
func Set(cell, text string) []Effect { return []Effect{{Cell: cell, Text: text, Over: true}} }

// Count returns the effect of a change that adds to a cell.
func Count(cell string, n int64) []Effect { return []Effect{{Cell: cell, Amount: n}} }

// Reset returns the effect of a change that removes everything it knew in the cells that begin with
// prefix.
func Reset(prefix string) []Effect { return []Effect{{Cell: prefix, Reset: true}} }

// Spec computes a value from the changes and their causal order alone, without dots, vectors or
// stores. A put is visible unless a change that knew it removes it: a reset of a prefix of its cell
// or a [Set] of its cell. Spec returns the text that a cell shows for its visible puts, of which
// there is at least one, or false if it shows nothing. A Spec may choose another Spec by the name
// of the cell.
type Spec func(puts []Visible) (text string, shows bool)

// Visible is a put that no change has removed.
type Visible struct {
	Effect
	Replica int
	Clock   uint64 // the hybrid logical time of the change
	Stamp   uint64 // Clock, raised above the stamps of the puts to the cell visible to it
}

// The specifications of the types of package crdt.
var (
	// Present is the specification of sets in which adds win: a [Put] wins over a concurrent reset.
	Present Spec = func([]Visible) (string, bool) { return "in", true }
	// Sum is the specification of counters: every amount counts.
	Sum Spec = func(puts []Visible) (string, bool) {
		var n int64
		for _, p := range puts {
			n += p.Amount
		}
		return strconv.FormatInt(n, 10), true
	}
	// Last is the specification of registers with a clock: the [Set] with the largest stamp wins,
	// then the one of the largest replica.
	Last Spec = func(puts []Visible) (string, bool) {
		return slices.MaxFunc(puts, func(a, b Visible) int {
			return cmp.Or(cmp.Compare(a.Stamp, b.Stamp), cmp.Compare(a.Replica, b.Replica))
		}).Text, true
	}
	// First selects the put with the smallest clock, then the one of the largest replica.
	First Spec = func(puts []Visible) (string, bool) {
		return slices.MinFunc(puts, func(a, b Visible) int {
			return cmp.Or(cmp.Compare(a.Clock, b.Clock), cmp.Compare(b.Replica, a.Replica))
		}).Text, true
	}
	// Unanimous is the specification of remove-wins types: in unless a visible [Set] has the text
	// [No].
	Unanimous Spec = func(puts []Visible) (string, bool) {
		return "in", !slices.ContainsFunc(puts, func(p Visible) bool { return p.Text == No })
	}
	// Every is the specification of registers that keep concurrent writes: the texts of all [Set],
	// sorted and without duplicates.
	Every Spec = func(puts []Visible) (string, bool) {
		var texts []string
		for _, p := range puts {
			texts = append(texts, p.Text)
		}
		slices.Sort(texts)
		return strings.Join(slices.Compact(texts), " "), true
	}
	// Largest and Smallest select the largest and the smallest amount.
	Largest Spec = func(puts []Visible) (string, bool) {
		return amount(slices.MaxFunc(puts, byAmount))
	}
	Smallest Spec = func(puts []Visible) (string, bool) {
		return amount(slices.MinFunc(puts, byAmount))
	}
)

// No is the text of a put that marks its element as removed.
const No = "no"

func byAmount(a, b Visible) int { return cmp.Compare(a.Amount, b.Amount) }

func amount(p Visible) (string, bool) { return strconv.FormatInt(p.Amount, 10), true }

// event is one update: its effects in order, and all events known when it was made.
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

// put is one effect other than a reset.
type put struct {
	e *event
	i int
}

func (p put) effect() Effect { return p.e.effects[p.i] }

// before reports whether effect j of event e knew p.
func (p put) before(e *event, j int) bool {
	if p.e == e {
		return p.i < j
	}
	return e.before[p.e.id]
}

// add adds a new event to the history and stamps its puts.
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

// visible returns the puts that nothing in seen removes. Of the event cut only the effects before i
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

// value returns the value that a replica must show after seeing these events.
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
