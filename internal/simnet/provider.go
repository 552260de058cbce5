package simnet

import (
	"slices"
	"time"
)

// Provider lets members find out by themselves who is there, as Proto.Actor's providers do. Without
// it a cluster lists what it is told to.
type Provider struct {
	// Round is how often a member looks for all others.
	Round time.Duration
	// Silence is how long another member must be out of reach, in one direction at least, or
	// frozen, before it is dropped. Its id is then never listed again by the member that dropped
	// it.
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

// Look is one round of every member's provider; without a Provider it does nothing.
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

// lookAt lists whom o reaches, and drops who was silent for too long, or has another process at its
// address.
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
		replaced := slices.ContainsFunc(seen, func(s *Member) bool { return s.ID != id && s.Address == m.Address })
		if replaced || now.Sub(o.heard[id]) >= c.cfg.Provider.Silence {
			silent = append(silent, m)
		}
	}
	c.mu.Unlock()
	c.change(o, seen, silent)
}

// reach tells whether two members that are not frozen can talk both ways.
func (c *Cluster) reach(a, b *Member) bool {
	c.mu.Lock()
	still := a.frozen || b.frozen || b.gone
	c.mu.Unlock()
	return !still && !c.Net.Link(a.Address, b.Address).Faults().Cut && !c.Net.Link(b.Address, a.Address).Faults().Cut
}
