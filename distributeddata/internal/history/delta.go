package history

import (
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// Delta is a closed unit of replication: a replica that has seen Base applies its events in one
// step and has then seen Head too [R7, R16]. Events are all events in Head that Base does not
// cover, by origin and number. Added atoms that no longer live are marked gone.
type Delta struct {
	Base, Head causal.Vector
	Events     []DeltaEvent
	Origin     causal.Replica // of a push
	// Hashes is set in a push: the hashes of its origin's events up to Base, and up to each event
	// of the push [R4].
	Hashes []EventHash
}

// DeltaEvent is an event of a delta, with the payloads of the atoms that still live.
type DeltaEvent struct {
	Event
	Gone [][]bool // per key, per added atom
}

// Closed reports whether the events are exactly those between Base and Head.
func (d *Delta) Closed() bool {
	i := 0
	for r, covers := range d.Head.Differing(d.Base) {
		for n := covers[1] + 1; n <= covers[0]; n++ {
			if i == len(d.Events) || d.Events[i].Dot != (causal.Dot{Replica: r, N: n}) {
				return false
			}
			i++
		}
	}
	return i == len(d.Events)
}

// Torn reports whether only some of a push's events are covered. A push leaves out atoms that were
// added and removed among its events, so it is useful only to replicas that have none of them. The
// origin never sends only some of them [R9].
func (d *Delta) Torn(seen causal.Vector) bool {
	n := seen.Get(d.Origin)
	return d.Base.Get(d.Origin) < n && n < d.Head.Get(d.Origin)
}

// beyond returns the events that seen does not cover.
func (d *Delta) beyond(seen causal.Vector) []DeltaEvent {
	covered := func(e DeltaEvent) bool { return seen.Covers(e.Dot) }
	if !slices.ContainsFunc(d.Events, covered) {
		return d.Events
	}
	return slices.DeleteFunc(slices.Clone(d.Events), covered)
}

// Since returns the events that a replica at base lacks, without payloads, or false if the log
// does not reach back far enough.
func (h *History) Since(base causal.Vector) (*Delta, bool) {
	d := &Delta{Base: base.Meet(h.seen), Head: h.seen}
	for r, covers := range h.seen.Differing(base) {
		if covers[0] <= covers[1] {
			continue
		}
		events, ok := h.log.from(r, covers[1]+1)
		if !ok {
			return nil, false
		}
		for _, e := range events {
			d.Events = append(d.Events, DeltaEvent{Event: e})
		}
	}
	return d, true
}

// Fill adds the payloads of atoms that still live to an event of the log.
func (h *History) Fill(e Event) DeltaEvent {
	out := DeltaEvent{Event: e, Gone: make([][]bool, len(e.Keys))}
	out.Keys = slices.Clone(e.Keys)
	for i, k := range e.Keys {
		if len(k.Adds) == 0 {
			continue
		}
		s, _ := h.keys.Get(k.Key)
		adds := make([]causal.Atom, len(k.Adds))
		out.Gone[i] = make([]bool, len(k.Adds))
		for j, a := range k.Adds {
			at, lives := s.Get(a.Path)
			l, mine := at.Of(a.Replica)
			if lives = lives && mine && l.N == a.N; lives {
				a.Payload = l.Payload
			}
			adds[j], out.Gone[i][j] = a, !lives
		}
		out.Keys[i].Adds = adds
	}
	return out
}

// apply applies an event; seen is the vector before the first event.
func (b *batch) apply(e DeltaEvent, keys Keys, seen causal.Vector) {
	for i, k := range e.Keys {
		change := k.Change
		if i < len(e.Gone) && slices.Contains(e.Gone[i], true) {
			change.Adds = nil
			for j, a := range k.Adds {
				if !e.Gone[i][j] {
					change.Adds = append(change.Adds, a)
				}
			}
		}
		s, ok := b.stores[k.Key]
		if !ok {
			h, _ := keys.Get(k.Key)
			s = h.Store
			b.order = append(b.order, k.Key)
		}
		b.stores[k.Key] = s.Apply(change, e.Deps, seen)
	}
}
