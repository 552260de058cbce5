package core

import "slices"

// opinion is what the last comparison of fingerprints with a member said.
type opinion uint8

const (
	unknown opinion = iota
	same
	other
)

// compare compares fingerprints with a member that has seen exactly the same [R25]. Equal vectors mean
// equal states, so unequal fingerprints mean that memory rots here or there, or a bug.
func (c *Core) compare(p *peer, sum Sum) {
	was := p.opinion
	p.opinion = same
	if sum != c.sum {
		p.opinion = other
	}
	if p.opinion == other && was != other {
		c.stats.Diverged++
		c.emit(Diverged{Member: p.ID})
	}
}

// outvoted reports whether this replica is the one that is wrong, as far as a vote can tell: a majority
// holds something else, or half of all do and the replica with the smallest id is among them.
func (c *Core) outvoted() bool {
	us, them := 1, 0
	first, side := c.me, same
	for _, p := range c.peers {
		switch p.opinion {
		case same:
			us++
		case other:
			them++
		}
		if p.opinion != unknown && p.replica < first {
			first, side = p.replica, p.opinion
		}
	}
	n := len(c.peers) + 1
	return them > n/2 || us+them == n && us == them && side == other
}

// mend asks one of those who outvoted this replica for their state [R22a].
func (c *Core) mend() {
	if c.incoming != nil || !slices.ContainsFunc(c.peers, func(p *peer) bool { return p.opinion == other }) || !c.outvoted() {
		return
	}
	for _, p := range c.peers {
		if p.opinion == other && p.ready && p.replica != 0 {
			c.ask(p, true)
			return
		}
	}
}
