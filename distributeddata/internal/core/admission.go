package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
)

// The methods in this file decide whether a replica may take its place, and may count.

// mayTake reports whether this replica may take its place now. It first learns what other members
// remember. If a cluster exists, it is first refilled, so that a replica that dies while being
// refilled is never counted.
func (r *members) mayTake(s *step, own quorum.Member, ps peers, d *disk) bool {
	if s.now.Before(r.takeAt) || r.nameTaken(s, own, ps) {
		return false
	}
	if r.Recorded() {
		known, ask := r.roster.consulted(s.now)
		if s.emit(ask); !known {
			return false
		}
	}
	spoke, gave, n := true, true, 1
	for _, p := range ps {
		spoke, gave = spoke && p.spoke, gave && p.gave
		if !p.titled || p.least > 0 {
			n++
		}
	}
	counted := own.Counts()
	if r.Recorded() && !counted {
		return r.filled || r.Counted() == 0
	}
	if r.Clustered() {
		return r.filled || gave && (counted || r.countedHere(ps)) &&
			(n >= r.Least() || d.keeps() && n >= quorum.MajorityOf(r.Size()))
	}
	return spoke && n >= r.Least() && (r.Digest() != 0 || !ps.remember())
}

// nameTaken reports whether a later process runs under this one's name. A replica that has never
// counted, and does not see the other process, treats that one as a former one of which it has not
// heard in time. A replica that has counted waits until the other process has been out of view for
// long, each time twice as long, since two running processes would take the place from each other
// [M2].
func (r *members) nameTaken(s *step, own quorum.Member, ps peers) bool {
	if r.inc.Number == 0 || own.Inc == r.inc ||
		own.Rank != quorum.Joining && own.Rank != quorum.In {
		return false
	}
	p := ps.at(own.Inc.Replica)
	if p == nil && !r.counted {
		return false
	}
	if r.duplicate != own.Inc.Replica {
		r.duplicate, r.duplicateAt = own.Inc.Replica, s.now
		r.duplicates++
		s.emit(DuplicateName{By: r.places[own.Name]})
	}
	if p != nil {
		r.duplicateAt = s.now
	}
	wait := r.beat * duplicateBeats << min(r.duplicates-1, 10)
	return s.now.Before(r.duplicateAt.Add(wait))
}

// duplicateBeats is the number of heartbeat intervals for which a later process of this name must
// be out of view before this one takes the place again.
const duplicateBeats = 60

// admitted reports whether enough members have answered for this replica to count.
func (r *members) admitted(now time.Time, ps peers, d *disk, patience time.Duration) bool {
	if r.Recorded() && r.Counted() == 1 {
		return true // the record says that no other member counts
	}
	base, have := r.voters(ps)
	size := max(base, r.Least())
	need := size - quorum.MajorityOf(size) + 1
	if r.entering {
		need = quorum.MajorityOf(size)
	}
	return have >= need || r.allAnswered(ps) || r.restarted(now, ps, d, patience)
}

// restarted reports whether enough counting members have kept what they acknowledged on their disks
// that they intersect every quorum [R52]. With write-behind the disks are only nearly complete;
// then no member may be counting, which means that all of them were down.
func (r *members) restarted(now time.Time, ps peers, d *disk, patience time.Duration) bool {
	if !d.keeps() || r.entering {
		return false
	}
	have := 1
	for _, m := range r.Members() {
		p := ps.at(m.Inc.Replica)
		if m.Name == r.Own().Name || !m.Counts() || p == nil {
			continue
		}
		switch {
		case p.answered && d.cfg.Behind > 0:
			return false
		case p.answered || p.whole:
			have++
		case !p.refilled && now.Before(r.takeAt.Add(patience)):
			return false
		}
	}
	return have >= quorum.MajorityOf(max(r.Counted(), r.Least()))
}

// asks reports whether an answer of p may be of use.
func (r *members) asks(p *peer, placed bool, seen causal.Vector) bool {
	switch {
	case placed:
		return p.said.under(r.Digest()) && !p.said.seen.Leq(seen)
	case p.ready:
		return true
	case p.gave:
		return false
	}
	return r.Clustered() || !p.spoke || !p.vector().Leq(seen)
}
