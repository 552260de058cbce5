package core

import (
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// delta is a closed unit of replication: whoever has seen base applies its events in one step and has
// then seen head too [R6, R11]. events are all of those in head that base does not cover, by origin
// and number. An added atom that does not live any more is marked gone.
type delta struct {
	base, head causal.Vector
	events     []deltaEvent
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

// makeDelta returns what a replica that has seen base lacks of this one, without payloads, or false if the
// log does not reach back so far.
func (c *Core) makeDelta(base causal.Vector) (*delta, bool) {
	d := &delta{base: base.Meet(c.seen), head: c.seen}
	for r, covers := range c.seen.Differing(base) {
		if covers[0] <= covers[1] {
			continue
		}
		events, ok := c.log.from(r, covers[1]+1)
		if !ok {
			return nil, false
		}
		for _, e := range events {
			d.events = append(d.events, deltaEvent{event: e})
		}
	}
	return d, true
}

// fill puts the payloads of atoms that still live back into an event of the log.
func (c *Core) fill(e event) deltaEvent {
	out := deltaEvent{event: e, gone: make([][]bool, len(e.keys))}
	out.keys = slices.Clone(e.keys)
	for i, k := range e.keys {
		if len(k.Adds) == 0 {
			continue
		}
		s, _ := c.keys.Get(k.key)
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

// apply takes a delta whose base is covered. Events that are covered already are passed over: what
// they removed is gone, and what they added was added or has been removed since.
func (c *Core) apply(d *delta) {
	seen := c.seen
	for _, e := range d.events {
		if seen.Covers(e.dot) {
			continue
		}
		c.batch.apply(e, c.keys, seen)
		c.log.add(e.event)
		c.stats.Applied++
	}
	c.install(&c.batch)
	c.seen = seen.Join(d.head)
	if len(d.events) > maxDifferences {
		c.jump()
	}
}

// batch gathers what events do to keys, so that each is put in place once, however many touch it.
type batch struct {
	stores map[string]causal.Store
	order  []string
}

// apply takes an event; seen is what was covered before the first one.
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

// install puts in place what was gathered.
func (c *Core) install(b *batch) {
	for _, key := range b.order {
		c.put(key, b.stores[key])
	}
	clear(b.stores)
	b.order = b.order[:0]
}
