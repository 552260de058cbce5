package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
)

// members is what a replica knows of the members that its quorums are counted over. The memory
// alone determines which members those are; the view only says which of them can be reached.
type members struct {
	quorum.Set
	inc      quorum.Incarnation // of this replica; number 0 until it has taken its place
	beat     time.Duration      // interval of heartbeats
	takeAt   time.Time          // earliest time at which it takes its place again
	entering bool               // it is a new member, which has not counted yet [M3]
	counted  bool               // it has counted in quorums
	ready    bool               // refilled since the start: may acknowledge and count [R23]
	// filled: it has counted, or one that counts has answered it, since it was last removed.
	filled bool
	viewed bool // it has received a view
	// resigned: it counted when it was marked as going, or its disk has all that it ever
	// acknowledged, so it helps to remove members [M5].
	resigned    bool
	leaving     bool                    // it wants to be forgotten, in order [M4]
	withdrawn   bool                    // it no longer acknowledges anything [R29]
	sealed      bool                    // it makes no more updates: others have all [R15]
	lowest      int                     // MinMembers of any member that it has heard
	duplicate   causal.Replica          // the last reported later process of this name; 0: none
	duplicates  int                     // how often such a process took the place
	duplicateAt time.Time               // when the last of these was last seen
	changed     []quorum.Member         // what this replica has changed and not told yet
	absent      map[string]time.Time    // members that cannot be reached, and since when
	places      map[string]string       // addresses, by name
	parted      map[causal.Replica]bool // replicas that have said that they are leaving [R29]
	leavers     map[causal.Replica]bool // the same, with those that want to be forgotten [M4]
	recalled    time.Time               // when the memory last changed
	news        []quorum.Member         // what changed then
	pullAt      time.Time               // no request for another member's memory before this time
	showAt      time.Time               // when to tell the other members which memory it has
	version     int                     // changes whenever the QuorumStatus does
	wire        []byte                  // the encoded memory
	wireOf      uint64                  // the digest of that memory
	told        *QuorumStatus           // the last QuorumStatus
	roster      roster                  // the record behind the memory [M9]
}

func newMembers(cfg Config) members {
	return members{
		Set:    quorum.NewSet(cfg.Member, cfg.MinMembers, cfg.Recorded),
		beat:   cfg.BeatInterval,
		lowest: cfg.MinMembers,
		roster: roster{pause: cfg.BeatInterval},
	}
}

// counts reports whether this replica counts in quorums: it is refilled, has not withdrawn, and its
// disk works.
func (r *members) counts(d *disk) bool { return r.ready && !r.withdrawn && d.sound() }

// self returns 1 if this replica counts in quorums, and 0 otherwise.
func (r *members) self(d *disk) int {
	if r.counts(d) {
		return 1
	}
	return 0
}

// parting reports whether this replica is leaving.
func (r *members) parting() bool { return r.withdrawn || r.leaving }

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hasPlace reports whether this replica is the present incarnation of its member in its memory, and
// that is not gone.
func (r *members) hasPlace() bool {
	own := r.Own()
	return r.inc.Number > 0 && own.Inc == r.inc && !own.Outside()
}

// announced reports whether this replica has its place. If it has never counted and another process
// has taken its place, it starts over. Otherwise members that remember the other process would
// treat this one as a former one and would not refill it [R44].
func (r *members) announced() bool { return r.counted || r.hasPlace() }

// unknownTo reports whether a memory lacks the incarnation of this replica.
func (r *members) unknownTo(m quorum.Memory) bool {
	return r.inc.Number > 0 && m.Of(r.Own().Name).Inc.Less(r.inc)
}

// placed takes the place that the record m gives this replica, if it is new: its swap has been
// carried out. The replica does not take its place again before the given time.
func (r *members) placed(m quorum.Memory, me causal.Replica, again time.Time) {
	if own := m.Of(r.Own().Name); own.Inc.Replica == me && own.Inc != r.inc {
		r.inc, r.entering, r.takeAt = own.Inc, r.roster.entering, again
	}
}

// missing returns the time since when a member cannot be reached, or zero if it can.
func (r *members) missing(name string, reached bool, now time.Time) time.Time {
	if reached {
		delete(r.absent, name)
		return time.Time{}
	}
	if r.absent == nil {
		r.absent = map[string]time.Time{}
	}
	if _, ok := r.absent[name]; !ok {
		r.absent[name] = now
	}
	return r.absent[name]
}

// identify determines which member p is.
func (r *members) identify(p *peer) { r.identifyAs(p, r.At(p.replica)) }

// identifyAs records which member p is.
func (r *members) identifyAs(p *peer, m quorum.Member) {
	p.name, p.votes, p.goes = m.Name, m.Rank == quorum.In, m.Rank == quorum.Going
	p.joins = m.Rank == quorum.Joining
	p.parts = r.parted[p.replica]
	r.version++
	if p.name != "" {
		if r.places == nil {
			r.places = map[string]string{}
		}
		r.places[p.name] = p.Address
	}
}

// compareLeast compares the MinMembers of p with that of this replica. It reports once that they
// differ.
func (r *members) compareLeast(s *step, p *peer) {
	if p.least > 0 {
		r.lowest = min(r.lowest, int(p.least))
	}
	if p.titled && !p.unequal && p.name != "" && int(p.least) != r.Least() {
		p.unequal = true
		s.emit(Unequal{Member: p.name, Least: int(p.least)})
	}
}

// The following methods compare the counted members with those in view.

// enters reports whether a replica has no place yet.
func (r *members) enters(replica causal.Replica) bool { return r.At(replica).Outside() }

// seesCounted reports whether all counted members are in view, or none of those that are not can
// have voted.
func (r *members) seesCounted(ps peers) bool {
	out := r.Counted()
	if r.Own().Counts() {
		out--
	}
	for _, p := range ps {
		if p.counts() {
			out--
		}
	}
	return out == 0 || r.neverVoted(ps)
}

// countedHere reports whether all counted members are in view and have answered this replica. Where
// none of them counts yet, a new member would raise the majority that the others need to become
// ready [M3]. It may do so only if none of them is missing, or if it may begin without those that
// are.
func (r *members) countedHere(ps peers) bool {
	return r.seesCounted(ps) && !slices.ContainsFunc(ps, func(p *peer) bool {
		return p.counts() && !p.gave
	})
}

// allAnswered reports whether all known or seen members have answered under the present memory.
// This replica then holds everything that any of them holds, so a cluster that starts cold becomes
// ready [M6]. Members that can no longer be seen are left out if they have never counted, or cannot
// have voted without another one: they may have died during the start.
func (r *members) allAnswered(ps peers) bool {
	n := 1
	for _, p := range ps {
		member := p.joins || p.counts()
		if !p.refilled && (member || !p.titled || p.least > 0) {
			return false
		}
		if member {
			n++
		}
	}
	return n >= r.Least() && r.seesCounted(ps)
}

// voters returns how many of the counted members may have voted, and how many of these have
// answered. A new member that has never counted has not voted.
func (r *members) voters(ps peers) (all, answered int) {
	all = r.Counted()
	if r.entering && r.Own().Counts() {
		all--
	}
	for _, p := range ps {
		switch {
		case p.counts() && p.refilled && p.entering:
			all--
		case p.answered:
			answered++
		}
	}
	return all, answered
}

// neverVoted reports whether the counted members of which this replica has no answer cannot have
// voted in any quorum without one that has answered: they are too few. So they hold nothing
// acknowledged that this replica could miss. What members that are gone have acknowledged may be on
// fewer members, so this is false once there are any.
func (r *members) neverVoted(ps peers) bool {
	if r.Recorded() || slices.ContainsFunc(r.Members(), func(m quorum.Member) bool {
		return m.Version > 0 || m.Rank == quorum.Gone
	}) {
		return false
	}
	all, answered := r.voters(ps)
	return all-answered < quorum.MajorityOf(max(all, r.lowest))
}

// heirs counts the members that can take over what this replica holds: the remembered ones, in view
// or not, and those in view that have no place yet. Members that are leaving are excluded, since
// they hand over nothing that they receive after they have started to leave.
func (r *members) heirs(ps peers) (n int) {
	own := r.Own().Name
	for _, m := range r.Members() {
		if (m.Rank == quorum.In || m.Rank == quorum.Joining) && m.Name != own &&
			!r.parted[m.Inc.Replica] {
			n++
		}
	}
	for _, p := range ps {
		if r.enters(p.replica) && !p.parts {
			n++
		}
	}
	return n
}

// othersLeave reports whether every other member that is counted, or is to be, has said that it is
// leaving: none stays that would have to forget this one, or could take over what it holds.
func (r *members) othersLeave(ps peers) bool {
	own := r.Own().Name
	for _, m := range r.Members() {
		if !m.Outside() && m.Name != own && !r.leavers[m.Inc.Replica] {
			return false
		}
	}
	return !slices.ContainsFunc(ps, func(p *peer) bool {
		return p.replica != 0 && r.enters(p.replica) && !r.leavers[p.replica]
	})
}

// myTurn reports whether this replica may have a member marked as going now: itself, or another.
// Only one member is marked at a time, so that those that stay are always a majority. Of several
// that leave at once the one with the smallest name goes first.
func (r *members) myTurn(ps peers, itself bool) bool {
	if r.Count(quorum.Going) > 0 {
		return false
	}
	own := r.Own().Name
	return !slices.ContainsFunc(ps, func(p *peer) bool {
		return p.leaving && p.votes && (!itself || p.name < own)
	})
}

// parts records whether p has said that it is leaving, and reports whether that is new. It does not
// change its mind, and this is remembered when p is out of view.
func (r *members) parts(p *peer, says bool) (anew bool) {
	if !says || p.parts {
		return false
	}
	p.parts = true
	if r.parted == nil {
		r.parted = map[causal.Replica]bool{}
	}
	r.parted[p.replica] = true
	return true
}

// leaves records that a replica has said that it is leaving, whether it wants to be forgotten or
// not.
func (r *members) leaves(replica causal.Replica) {
	if r.leavers == nil {
		r.leavers = map[causal.Replica]bool{}
	}
	r.leavers[replica] = true
}
