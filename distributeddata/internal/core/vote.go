package core

import (
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// opinion is the result of the last comparison of fingerprints with a member at equal vectors: the
// difference of the member's fingerprint. The difference stays the same later, since both apply the
// same events.
type opinion struct {
	known bool
	off   history.Sum
}

func (o opinion) differs() bool { return o.known && o.off != history.Sum{} }

// compare compares fingerprints with a member whose vector is equal [R26]. Equal vectors mean equal
// states, so different fingerprints mean corrupted memory on one side, or a bug.
func (c *Core) compare(p *peer, sum history.Sum) {
	was := p.opinion
	p.opinion = opinion{true, sum.Minus(c.history.Sum())}
	if p.opinion.differs() && !was.differs() {
		c.stats.Diverged++
		c.emit(Diverged{Member: p.ID})
	}
}

// mend asks a member that holds the winning state for it, if this replica's own state has lost
// [R27].
func (c *Core) mend() {
	if c.in.Busy() || !slices.ContainsFunc(c.peers, func(p *peer) bool {
		return p.opinion.differs()
	}) {
		return
	}
	off, decided := c.peers.stands(c.Replica())
	if !decided || off == (history.Sum{}) {
		return
	}
	for _, p := range c.peers {
		if p.opinion == (opinion{true, off}) && p.ready && p.replica != 0 {
			c.ask(p, true)
			return
		}
	}
}
