package core

import "slices"

// opinion is the result of the last comparison of fingerprints with a member at equal vectors: the
// difference of the member's fingerprint. The difference stays the same later, since both apply the
// same events.
type opinion struct {
	known bool
	off   Sum
}

func (o opinion) differs() bool { return o.known && o.off != Sum{} }

// compare compares fingerprints with a member whose vector is equal [R26]. Equal vectors mean equal
// states, so different fingerprints mean corrupted memory on one side, or a bug.
func (c *Core) compare(p *peer, sum Sum) {
	was := p.opinion
	p.opinion = opinion{true, sum.minus(c.sum)}
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
	off, decided := c.peers.stands(c.me)
	if !decided || off == (Sum{}) {
		return
	}
	for _, p := range c.peers {
		if p.opinion == (opinion{true, off}) && p.ready && p.replica != 0 {
			c.ask(p, true)
			return
		}
	}
}
