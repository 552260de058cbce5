package core

import (
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// trimLog cuts the events that every member of the view has, and then, while the log exceeds its
// budget, the older half of the largest origin's part. A member that is further back will need a
// snapshot. Events needed after an answer in flight are kept [R18]. It returns how far the members
// are behind.
func (h herald) trimLog(ps peers, out *outlet) (lags []Lag) {
	stable := h.Seen()
	lags = make([]Lag, 0, len(ps))
	for _, p := range ps {
		stable = stable.Meet(p.vector())
		lags = append(lags, Lag{p.ID, history.Missing(h.Seen(), p.seen)})
	}
	runs := ps.running(h.Replica())
	gone := func(r causal.Replica) bool { return !runs[r] }
	h.stats.Cut += h.history.Trim(stable, out.pinned(), gone, h.cfg.LogBytes)
	return lags
}

// Lag is the number of events that this replica has seen and a member is not known to have seen.
// The log keeps them until the member has them, or the log exceeds its budget.
type Lag struct {
	Member string
	Events uint64
}

// Lags returns how far the members were behind at the last heartbeat. The slice is never modified.
func (c *Core) Lags() []Lag { return c.lags }
