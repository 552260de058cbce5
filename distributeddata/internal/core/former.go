package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
)

// former is a replica that ran for a member until recently: a member that still takes it for the
// present one may receive a late message of it [R15].
type former struct {
	replica causal.Replica
	since   time.Time // zero: an earlier life of this process knew it
}

// maxFormers bounds the number of known former replicas. formerBeats is for how many heartbeat
// intervals one is known.
const maxFormers, formerBeats = 64, 120

// arrivals tells of which replicas no event has arrived for formerBeats: a replica may run although
// this one has never seen it, while another member passes its events on [R15].
type arrivals struct {
	before, lately causal.Vector // what had been seen formerBeats before at, or earlier; and at at
	at             time.Time
}

// turn records what has been seen by now, once in formerBeats.
func (a *arrivals) turn(now time.Time, wait time.Duration, seen causal.Vector) {
	switch {
	case a.at.IsZero():
		a.lately, a.at = seen, now
	case !now.Before(a.at.Add(wait)):
		a.before, a.lately, a.at = a.lately, seen, now
	}
}

// replaced records that a replica no longer runs for its member, or is out of view.
func (c *Core) replaced(r causal.Replica) {
	if r == 0 {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(c.formers), func(f former) bool {
		return f.replica == r
	})
	c.formers = append(kept[max(0, len(kept)+1-maxFormers):], former{r, c.now})
}

// replacedIn records the replicas that another memory no longer names.
func (c *Core) replacedIn(next quorum.Memory) {
	for _, r := range c.roll.Members() {
		if next.Of(r.Name).Inc != r.Inc {
			c.replaced(r.Inc.Replica)
		}
	}
}

// formersOfNext returns the former replicas of the next life of this process: those of this life,
// and its peers, which the next one does not see yet. Their times begin anew, since the clock may
// have been set.
func (c *Core) formersOfNext() []former {
	for _, p := range c.peers {
		c.replaced(p.replica)
	}
	all := slices.Clone(c.formers)
	for i := range all {
		all[i].since = time.Time{}
	}
	return all
}

// forgetFormers drops the former replicas that have not run for long enough, and records what has
// arrived.
func (c *Core) forgetFormers() {
	for i := range c.formers {
		if c.formers[i].since.IsZero() {
			c.formers[i].since = c.now
		}
	}
	wait := formerBeats * c.cfg.BeatInterval
	c.arrivals.turn(c.now, wait, c.seen)
	late := func(f former) bool { return !c.now.Before(f.since.Add(wait)) }
	if slices.ContainsFunc(c.formers, late) {
		c.formers = slices.DeleteFunc(slices.Clone(c.formers), late)
	}
}
