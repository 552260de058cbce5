package core

import (
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// trimLog cuts the events that every member of the view has, and then, while the log exceeds its
// budget, the older half of the largest origin's part. A member that is further back will need a
// snapshot. Events needed after an answer in flight are kept [R18].
func (c *Core) trimLog() {
	stable := c.Seen()
	c.lags = make([]Lag, 0, len(c.peers))
	for _, p := range c.peers {
		stable = stable.Meet(p.vector())
		c.lags = append(c.lags, Lag{p.ID, history.Missing(c.Seen(), p.seen)})
	}
	runs := c.peers.running(c.Replica())
	gone := func(r causal.Replica) bool { return !runs[r] }
	c.stats.Cut += c.history.Trim(stable, c.out.pinned(), gone, c.cfg.LogBytes)
}

// Lag is the number of events that this replica has seen and a member is not known to have seen.
// The log keeps them until the member has them, or the log exceeds its budget.
type Lag struct {
	Member string
	Events uint64
}

// Lags returns how far the members were behind at the last heartbeat. The slice is never modified.
func (c *Core) Lags() []Lag { return c.lags }
