package core

import "slices"

// opinion is what the last comparison of fingerprints with a member said, at equal vectors: by how much the member's
// differs. It differs by as much later on, since both apply the same events.
type opinion struct {
	known bool
	off   Sum
}

func (o opinion) differs() bool { return o.known && o.off != Sum{} }

// compare compares fingerprints with a member that has seen exactly the same [R25]. Equal vectors mean
// equal states, so unequal fingerprints mean that memory rots here or there, or a bug.
func (c *Core) compare(p *peer, sum Sum) {
	was := p.opinion
	p.opinion = opinion{true, sum.minus(c.sum)}
	if !p.opinion.differs() {
		c.equalTo(p)
	}
	if p.opinion.differs() && !was.differs() {
		c.stats.Diverged++
		c.emit(Diverged{Member: p.ID})
	}
}

// stands returns which state stands, by how much its fingerprint differs from this replica's, as far as a vote can tell:
// that of a majority; or, once all have been compared, that of most, and of these the one of the smallest replica id.
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

// mend asks one of those whose state stands for it, if that is not this replica's [R22a].
func (c *Core) mend() {
	if c.incoming != nil || !slices.ContainsFunc(c.peers, func(p *peer) bool { return p.opinion.differs() }) {
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
