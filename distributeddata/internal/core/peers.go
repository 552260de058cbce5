package core

import (
	"slices"
	"strings"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// peers are the other members in view, by member id.
type peers []*peer

// of returns the peer for a member of the view, or nil.
func (ps peers) of(member string) *peer {
	i, ok := slices.BinarySearchFunc(ps, member, func(p *peer, id string) int {
		return strings.Compare(p.ID, id)
	})
	if !ok {
		return nil
	}
	return ps[i]
}

// at returns the peer whose present replica is r, or nil.
func (ps peers) at(r causal.Replica) *peer {
	for _, p := range ps {
		if p.replica == r {
			return p
		}
	}
	return nil
}

// running returns the present replicas of the members, with that of this one.
func (ps peers) running(me causal.Replica) map[causal.Replica]bool {
	runs := make(map[causal.Replica]bool, len(ps)+1)
	runs[me] = true
	for _, p := range ps {
		runs[p.replica] = true
	}
	return runs
}

// pushing reports whether a member has not acknowledged a push.
func (ps peers) pushing() bool {
	return slices.ContainsFunc(ps, func(p *peer) bool { return p.inFlight > 0 })
}

// remember reports whether another member has a memory.
func (ps peers) remember() bool {
	return slices.ContainsFunc(ps, func(p *peer) bool { return p.memory != 0 })
}

// see reports whether a replica, or one at an address, is in view.
func (ps peers) see(r causal.Replica, address string) bool {
	return slices.ContainsFunc(ps, func(p *peer) bool {
		return p.replica == r || address != "" && p.Address == address
	})
}

// neverCounted counts the members that are going and say that they have never counted: no quorum
// ever included them.
func (ps peers) neverCounted() (n int) {
	for _, p := range ps {
		if p.goes && p.entering {
			n++
		}
	}
	return n
}

// before returns the number of voting members that come before a given one in the order of names.
func (ps peers) before(member string) (n int) {
	for _, p := range ps {
		if p.votes && p.ready && p.name < member {
			n++
		}
	}
	return n
}

// others returns the number of members that take part in a task.
func (ps peers) others(t task) (have int) {
	for _, p := range ps {
		if p.replica != 0 && t.has(p, 0) {
			have++
		}
	}
	return have
}

// majorityState returns which state wins, as the difference of its fingerprint from this replica's,
// as far as a vote can decide. A state held by a majority wins. Otherwise, once all have been
// compared, the most frequent one wins; among equals, that of the smallest replica id.
func (ps peers) majorityState(me causal.Replica) (off history.Sum, decided bool) {
	votes, compared := map[history.Sum]int{{}: 1}, 1
	for _, p := range ps {
		if p.vote.known {
			votes[p.vote.off]++
			compared++
		}
	}
	first := me
	for _, p := range ps {
		if !p.vote.known {
			continue
		}
		mine, most := votes[p.vote.off], votes[off]
		if mine > most || mine == most && p.replica < first {
			off, first = p.vote.off, p.replica
		} else if p.vote.off == off {
			first = min(first, p.replica)
		}
	}
	n := len(ps) + 1
	return off, votes[off] > n/2 || compared == n
}

// voters returns the number of members in view that vote.
func (ps peers) voters() (n int) {
	for _, p := range ps {
		if p.votes {
			n++
		}
	}
	return n
}
