package simnet

import (
	"slices"
	"time"
)

// Provider makes members discover each other by themselves, like Proto.Actor's providers. Without
// it a cluster lists the members that the test lists.
type Provider struct {
	// Round is the interval at which a member looks for all others.
	Round time.Duration
	// Silence is how long another member must be frozen, or unreachable in at least one direction,
	// before it is dropped. The member that dropped it never lists its id again.
	Silence time.Duration
}

// look runs rounds until the cluster is closed.
func (c *Cluster) look() {
	defer close(c.looked)
	for {
		select {
		case <-time.After(c.cfg.Provider.Round):
			c.Look()
		case <-c.closed:
			return
		}
	}
}

// Look runs one round of every member's provider; without a Provider it does nothing.
func (c *Cluster) Look() {
	if c.cfg.Provider == nil {
		return
	}
	live := c.Live()
	now := time.Now()
	for _, o := range live {
		c.lookAt(o, live, now)
	}
}

// lookAt lists the members that o reaches. It drops members that were silent for too long, or whose
// address has another process.
func (c *Cluster) lookAt(o *Member, live []*Member, now time.Time) {
	var seen []*Member
	for _, m := range live {
		if m == o || c.reach(o, m) {
			seen = append(seen, m)
		}
	}
	c.mu.Lock()
	if o.frozen || o.gone {
		c.mu.Unlock()
		return
	}
	for _, m := range seen {
		o.heard[m.ID] = now
	}
	var silent []*Member
	for id, m := range o.lists {
		replaced := slices.ContainsFunc(seen, func(s *Member) bool {
			return s.ID != id && s.Address == m.Address
		})
		if replaced || now.Sub(o.heard[id]) >= c.cfg.Provider.Silence {
			silent = append(silent, m)
		}
	}
	c.mu.Unlock()
	c.change(o, seen, silent)
}

// reach reports whether two members that are not frozen can communicate both ways.
func (c *Cluster) reach(a, b *Member) bool {
	c.mu.Lock()
	still := a.frozen || b.frozen || b.gone
	c.mu.Unlock()
	return !still && !c.Net.Link(a.Address, b.Address).Faults().Cut &&
		!c.Net.Link(b.Address, a.Address).Faults().Cut
}
