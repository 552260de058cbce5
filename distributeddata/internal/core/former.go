package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// former is a replica that ran for a member until lately. Two members may hold two histories of it: that from before a
// restore and that after it, which the member has ended by going on under a new id. So its prints are still told, for as
// long as histories wait for each other [R57].
type former struct {
	replica causal.Replica
	since   time.Time
}

// maxFormers bounds how many of them are known.
const maxFormers = 64

// replaced notes that a replica runs for its member no more, or out of view.
func (c *Core) replaced(r causal.Replica) {
	if r == 0 {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(c.formers), func(f former) bool { return f.replica == r })
	c.formers = append(kept[max(0, len(kept)+1-maxFormers):], former{r, c.now})
}

// replacedIn notes the replicas that another memory does not name any more.
func (c *Core) replacedIn(next memory) {
	for _, r := range c.roll.all {
		if next.of(r.name).inc != r.inc {
			c.replaced(r.inc.replica)
		}
	}
}

// forgetFormers lets go of those of which nobody hears any more.
func (c *Core) forgetFormers() {
	wait := 2 * c.cfg.BeatInterval * forkBeats
	late := func(f former) bool { return !c.now.Before(f.since.Add(wait)) }
	if slices.ContainsFunc(c.formers, late) {
		c.formers = slices.DeleteFunc(slices.Clone(c.formers), late)
	}
}
