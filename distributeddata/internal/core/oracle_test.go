package core

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-go/concord/internal/causal"
)

// The specification: what a replica shows, as a function of the operations that its vector covers and
// of what happened before what. It knows nothing of atoms, marks, logs or messages.

type opKind2 uint8

const (
	opAdd    opKind2 = iota // put an element into a set
	opRemove                // take it out
	opCount                 // add to a counter of a map of counters
	opWrite                 // write a register of a map of registers
	opDrop                  // remove a key of a map: resets what is below
	opDelete                // delete the whole entry
)

type op struct {
	kind  opKind2
	key   string // of the entry: its first letter is its type: s(et), c(ounters), r(egisters)
	sub   string // element, or key inside the map
	value int64
}

var opKinds = [...]string{"add", "remove", "count", "write", "drop", "delete"}

func (o op) String() string {
	return fmt.Sprintf("%s %s/%s %d", opKinds[o.kind], o.key, o.sub, o.value)
}

// record is one event as the specification sees it. Each operation has the clock of its update.
type record struct {
	dot    causal.Dot
	deps   causal.Vector
	ops    []op
	clocks []uint64

	stamps map[int]uint64 // of its writes, once asked for: they follow from what is above
}

type history map[causal.Dot]*record

// place is an operation in its event.
type place struct {
	*record
	i int
}

func before(a, b place) bool {
	if a.dot == b.dot {
		return a.i < b.i
	}
	return b.deps.Covers(a.dot)
}

// takes reports whether t takes away what a did, had it seen it.
func takes(t, a op) bool {
	switch t.kind {
	case opDelete:
		return t.key == a.key
	case opRemove, opDrop:
		return t.key == a.key && t.sub == a.sub
	case opWrite:
		return a.kind == opWrite && t.key == a.key && t.sub == a.sub
	}
	return false
}

// spec returns what a replica with the vector shows: a line per fact, in order.
func (h history) spec(seen causal.Vector) string {
	gives, removals := h.split(seen)
	facts := map[string]int64{}
	winner := map[string]place{}
	for _, a := range gives {
		x := a.ops[a.i]
		if slices.ContainsFunc(removals[x.key], func(t place) bool { return takes(t.ops[t.i], x) && before(a, t) }) {
			continue
		}
		name := x.key + "/" + x.sub
		switch x.kind {
		case opAdd:
			facts[name] = 1
		case opCount:
			facts[name] += x.value
		case opWrite:
			if w, ok := winner[name]; !ok || h.stampOf(a) > h.stampOf(w) || h.stampOf(a) == h.stampOf(w) && a.dot.Replica > w.dot.Replica {
				winner[name] = a
				facts[name] = x.value
			}
		}
	}
	return lines(facts)
}

// split returns the operations that give something and, by key, those that take something away.
func (h history) split(seen causal.Vector) (gives []place, removals map[string][]place) {
	removals = map[string][]place{}
	for d := range seen.All() {
		for n := uint64(1); n <= d.N; n++ {
			r := h[causal.Dot{Replica: d.Replica, N: n}]
			for i, o := range r.ops {
				switch o.kind {
				case opAdd, opCount:
					gives = append(gives, place{r, i})
				case opWrite:
					gives = append(gives, place{r, i})
					removals[o.key] = append(removals[o.key], place{r, i})
				default:
					removals[o.key] = append(removals[o.key], place{r, i})
				}
			}
		}
	}
	return gives, removals
}

// stampOf is the stamp a register write gets: above all writes there that its replica had seen and
// that were live, and not below the replica's clock.
func (h history) stampOf(p place) uint64 {
	if stamp, ok := p.stamps[p.i]; ok {
		return stamp
	}
	x := p.ops[p.i]
	stamp := p.clocks[p.i]
	gives, removals := h.split(p.deps)
	for i := range p.i {
		switch o := p.ops[i]; o.kind {
		case opWrite:
			gives = append(gives, place{p.record, i})
			removals[o.key] = append(removals[o.key], place{p.record, i})
		case opDrop, opDelete:
			removals[o.key] = append(removals[o.key], place{p.record, i})
		}
	}
	for _, a := range gives {
		o := a.ops[a.i]
		if o.kind != opWrite || o.key != x.key || o.sub != x.sub {
			continue
		}
		if !slices.ContainsFunc(removals[x.key], func(t place) bool { return takes(t.ops[t.i], o) && before(a, t) }) {
			stamp = max(stamp, h.stampOf(a)+1)
		}
	}
	if p.stamps == nil {
		p.stamps = map[int]uint64{}
	}
	p.stamps[p.i] = stamp
	return stamp
}

func lines(facts map[string]int64) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(facts)) {
		b.WriteString(k)
		b.WriteByte('=')
		b.WriteString(strconv.FormatInt(facts[k], 10))
		b.WriteByte('\n')
	}
	return b.String()
}
