package core

import (
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// stateVote is the result of the last comparison of fingerprints with a member at equal vectors:
// the difference of the member's fingerprint. The difference stays the same later, since both apply
// the same events.
type stateVote struct {
	known bool
	off   history.Sum
}

func (o stateVote) differs() bool { return o.known && o.off != history.Sum{} }

// compare compares fingerprints with a member whose vector is equal [R26]. Equal vectors mean equal
// states, so different fingerprints mean corrupted memory on one side, or a bug.
func (p *peer) compare(s *step, mine, theirs history.Sum) {
	was := p.vote
	p.vote = stateVote{true, theirs.Minus(mine)}
	if p.vote.differs() && !was.differs() {
		s.stats.Diverged++
		s.emit(Diverged{Member: p.ID})
	}
}

// adoptMajority asks a member that holds the winning state for it, if this replica's own state has
// lost [R27].
func (in *intake) adoptMajority(h herald, ps peers) {
	if in.Busy() || !slices.ContainsFunc(ps, func(p *peer) bool {
		return p.vote.differs()
	}) {
		return
	}
	off, decided := ps.majorityState(h.Replica())
	if !decided || off == (history.Sum{}) {
		return
	}
	for _, p := range ps {
		if p.vote == (stateVote{true, off}) && p.ready && p.replica != 0 {
			in.ask(h, p, true)
			return
		}
	}
}
