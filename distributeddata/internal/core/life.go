package core

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// past is what the former lives of this process did [R28].
type past struct {
	events causal.Vector // by their replica ids
	copied causal.Vector // those of them that another replica is known to have
}

// Again returns the replica with which the next life of the same process goes on [R28]. It holds what c held, the
// event that was still open included, but under a new id: the events of the ended life are those of an origin
// that has departed, and are served from the log like any other's. It knows no peer, and is not ready until it
// has been refilled. c must not be used any more.
func (c *Core) Again(cfg Config) *Core {
	c.restore() // c may have panicked
	c.endAgain()
	n := New(cfg)
	n.takeOver(c.ledger)
	n.clock, n.stats = c.clock, c.stats
	n.base, n.bases, n.heardOf = c.base, c.bases, c.heardOf
	n.past = c.past.after(c)
	n.roll.memory, n.roll.places = c.roll.memory, c.roll.places
	n.revoked, n.retracted, n.formers = c.revoked.again(), c.retracted, c.formers
	if n.disk.phase != NoDisk {
		n.takeDisk(c)
	}
	return n
}

// after returns the past of the life after c.
func (p past) after(c *Core) past {
	return past{
		events: p.events.Join(c.past.events).Set(c.me, c.seen.Get(c.me)),
		copied: p.copied.Join(c.past.copied).Set(c.me, c.copied),
	}
}

// inherit joins what the replica of the former life held, if that one ended too late for Again. Its events are
// none of this replica's.
func (c *Core) inherit(old *Core) {
	old.end()
	c.past = c.past.after(old)
	c.clock = max(c.clock, old.clock)
	c.note(c.join(old.state()))
}

// copy notes that another replica has seen v.
func (p *past) copy(v causal.Vector) {
	if !p.events.Leq(p.copied) {
		p.copied = p.copied.Join(v.Meet(p.events))
	}
}

// Uncopied returns how many events of this replica, and of the former lives of its process, no other replica is
// known to have: they are lost if the process ends now. The open event counts as one, and so do the
// events that are to be done again [R57].
func (c *Core) Uncopied() uint64 {
	n := c.seen.Get(c.me) - c.copied + missing(c.past.events, c.past.copied)
	if len(c.open) > 0 {
		n++
	}
	if c.revoked != nil {
		n++
	}
	return n
}

// UncopiedKeys returns keys that these events have touched, in order, at most limit of them. Events that the log does
// not hold any more are left out.
func (c *Core) UncopiedKeys(limit int) []string {
	keys := map[string]bool{}
	for _, w := range c.open {
		keys[w.key] = true
	}
	if c.revoked != nil {
		for key := range c.revoked.keys {
			keys[key] = true
		}
	}
	for d := range c.past.events.Set(c.me, c.seen.Get(c.me)).All() {
		copied := c.past.copied.Get(d.Replica)
		if d.Replica == c.me {
			copied = c.copied
		}
		events, _ := c.log.from(d.Replica, copied+1)
		for _, e := range events {
			for _, k := range e.keys {
				keys[k.key] = true
			}
		}
	}
	out := slices.Sorted(maps.Keys(keys))
	return out[:min(limit, len(out))]
}
