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

// stands returns which state wins, as the difference of its fingerprint from this replica's, as far
// as a vote can decide. A state held by a majority wins. Otherwise, once all have been compared,
// the most frequent one wins; among equals, that of the smallest replica id.
func (c *Core) stands() (off Sum, decided bool) {
	votes, compared := map[Sum]int{{}: 1}, 1
	for _, p := range c.peers {
		if p.opinion.known {
			votes[p.opinion.off]++
			compared++
		}
	}
	first := c.me
	for _, p := range c.peers {
		if !p.opinion.known {
			continue
		}
		mine, most := votes[p.opinion.off], votes[off]
		if mine > most || mine == most && p.replica < first {
			off, first = p.opinion.off, p.replica
		} else if p.opinion.off == off {
			first = min(first, p.replica)
		}
	}
	n := len(c.peers) + 1
	return off, votes[off] > n/2 || compared == n
}

// mend asks a member that holds the winning state for it, if this replica's own state has lost
// [R27].
func (c *Core) mend() {
	if c.in.Busy() || !slices.ContainsFunc(c.peers, func(p *peer) bool {
		return p.opinion.differs()
	}) {
		return
	}
	off, decided := c.stands()
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
