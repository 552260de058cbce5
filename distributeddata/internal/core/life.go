package core

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// past is what the earlier lives of this process did [R40].
type past struct {
	events causal.Vector // by their replica ids
	copied causal.Vector // those that another replica is known to have
}

// Again returns the replica with which the next life of the same process continues [R40]. It holds
// the state of c, including the event that was still open, but has a new id: the events of the
// ended life are those of a departed origin, and are served from the log like any others. It knows
// no peer, and is not ready until it has been refilled. c must not be used afterwards.
func (c *Core) Again(cfg Config) *Core {
	c.restore() // c may have panicked
	c.endAgain()
	return c.successor(cfg)
}

// successor returns a new replica with the state of c, in which no event is open.
func (c *Core) successor(cfg Config) *Core {
	n := New(cfg)
	n.takeOver(c.ledger)
	n.clock, n.stats = c.clock, c.stats
	n.bases, n.prints.heard = c.bases.Next(), c.prints.heard
	n.past = c.past.after(c)
	n.roll.Memory, n.roll.places = c.roll.Memory, c.roll.places
	n.formers = c.formers.next(c.peers)
	if n.disk.phase != NoDisk {
		n.takeDisk(c)
	}
	return n
}

// after returns the past as of the end of c's life.
func (p past) after(c *Core) past {
	return past{
		events: p.events.Join(c.past.events).Set(c.me, c.seen.Get(c.me)),
		copied: p.copied.Join(c.past.copied).Set(c.me, c.copied),
	}
}

// inherit joins the state of an earlier life that ended too late for Again. The events of that life
// are not this replica's own.
func (c *Core) inherit(old *Core) {
	old.end()
	c.past = c.past.after(old)
	c.clock = max(c.clock, old.clock)
	c.note(c.join(old.state()))
}

// copy records that another replica has seen v.
func (p *past) copy(v causal.Vector) {
	if !p.events.Leq(p.copied) {
		p.copied = p.copied.Join(v.Meet(p.events))
	}
}

// Uncopied returns the number of events of this replica, and of the earlier lives of its process,
// that no other replica is known to have. They are lost if the process ends now.
func (c *Core) Uncopied() uint64 {
	n := c.seen.Get(c.me) - c.copied + missing(c.past.events, c.past.copied)
	return n + c.open.events()
}

// UncopiedKeys returns keys that these events changed, in order, at most limit of them. Of events
// that are no longer in the log, as those of a member that has been alone for a heartbeat, it finds
// the keys by the atoms that they have left in the state. An event that only removed atoms leaves
// none.
func (c *Core) UncopiedKeys(limit int) []string {
	keys := map[string]bool{}
	for _, w := range c.open.keys {
		keys[w.key] = true
	}
	cut := map[causal.Replica]uint64{}
	for d := range c.past.events.Set(c.me, c.seen.Get(c.me)).All() {
		copied := c.past.copied.Get(d.Replica)
		if d.Replica == c.me {
			copied = c.copied
		}
		if copied >= d.N {
			continue
		}
		events, complete := c.log.from(d.Replica, copied+1)
		if !complete {
			cut[d.Replica] = copied
			continue
		}
		for _, e := range events {
			for _, k := range e.keys {
				keys[k.key] = true
			}
		}
	}
	if len(cut) > 0 {
		c.keysBeyond(cut, keys)
	}
	out := slices.Sorted(maps.Keys(keys))
	return out[:min(limit, len(out))]
}

// keysBeyond adds the keys with an atom that a later event of one of these replicas has added.
func (c *Core) keysBeyond(events map[causal.Replica]uint64, keys map[string]bool) {
	for key, h := range c.keys.All() {
		for _, e := range h.Prefix("") {
			for at := range e.All() {
				if n, ok := events[at.Replica]; ok && at.N > n {
					keys[causal.Clone(key)] = true
				}
			}
		}
	}
}
