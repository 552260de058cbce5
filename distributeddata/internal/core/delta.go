package core

import (
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// delta is a closed unit of replication: a replica that has seen base applies its events in one
// step and has then seen head too [R7, R16]. events are all events in head that base does not
// cover, by origin and number. Added atoms that no longer live are marked gone.
type delta struct {
	base, head causal.Vector
	events     []deltaEvent
	origin     causal.Replica // of a push
	// prints is set in a push: the prints of its origin's events up to base, and up to each event
	// of the push [R4].
	prints []imprint
}

type deltaEvent struct {
	event
	gone [][]bool // per key, per added atom
}

// closed reports whether the events are exactly those between base and head.
func (d *delta) closed() bool {
	i := 0
	for r, covers := range d.head.Differing(d.base) {
		for n := covers[1] + 1; n <= covers[0]; n++ {
			if i == len(d.events) || d.events[i].dot != (causal.Dot{Replica: r, N: n}) {
				return false
			}
			i++
		}
	}
	return i == len(d.events)
}

// torn reports whether only some of a push's events are covered. A push leaves out atoms that were
// added and removed among its events, so it is useful only to replicas that have none of them. The
// origin never sends only some of them [R9].
func (d *delta) torn(seen causal.Vector) bool {
	n := seen.Get(d.origin)
	return d.base.Get(d.origin) < n && n < d.head.Get(d.origin)
}

// beyond returns the events that seen does not cover.
func (d *delta) beyond(seen causal.Vector) []deltaEvent {
	covered := func(e deltaEvent) bool { return seen.Covers(e.dot) }
	if !slices.ContainsFunc(d.events, covered) {
		return d.events
	}
	return slices.DeleteFunc(slices.Clone(d.events), covered)
}

// makeDelta returns the events that a replica at base lacks, without payloads, or false if the log
// does not reach back far enough.
func (l *ledger) makeDelta(base causal.Vector) (*delta, bool) {
	d := &delta{base: base.Meet(l.seen), head: l.seen}
	for r, covers := range l.seen.Differing(base) {
		if covers[0] <= covers[1] {
			continue
		}
		events, ok := l.log.from(r, covers[1]+1)
		if !ok {
			return nil, false
		}
		for _, e := range events {
			d.events = append(d.events, deltaEvent{event: e})
		}
	}
	return d, true
}

// fill adds the payloads of atoms that still live to an event of the log.
func (l *ledger) fill(e event) deltaEvent {
	out := deltaEvent{event: e, gone: make([][]bool, len(e.keys))}
	out.keys = slices.Clone(e.keys)
	for i, k := range e.keys {
		if len(k.Adds) == 0 {
			continue
		}
		s, _ := l.keys.Get(k.key)
		adds := make([]causal.Atom, len(k.Adds))
		out.gone[i] = make([]bool, len(k.Adds))
		for j, a := range k.Adds {
			at, lives := s.Get(a.Path)
			l, mine := at.Of(a.Replica)
			if lives = lives && mine && l.N == a.N; lives {
				a.Payload = l.Payload
			}
			adds[j], out.gone[i][j] = a, !lives
		}
		out.keys[i].Adds = adds
	}
	return out
}

// apply applies an event; seen is the vector before the first event.
func (b *batch) apply(e deltaEvent, keys Keys, seen causal.Vector) {
	for i, k := range e.keys {
		change := k.Change
		if i < len(e.gone) && slices.Contains(e.gone[i], true) {
			change.Adds = nil
			for j, a := range k.Adds {
				if !e.gone[i][j] {
					change.Adds = append(change.Adds, a)
				}
			}
		}
		s, ok := b.stores[k.key]
		if !ok {
			h, _ := keys.Get(k.key)
			s = h.Store
			b.order = append(b.order, k.key)
		}
		b.stores[k.key] = s.Apply(change, e.deps, seen)
	}
}
