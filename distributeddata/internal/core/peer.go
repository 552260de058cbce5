package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/internal/causal"
)

// peer is what this replica knows of another member.
type peer struct {
	Member
	replica causal.Replica // 0 until the first beat
	ready   bool
	peerVote
	seen  causal.Vector // last vector received, without news
	news  causal.Vector // what pushes have added since
	acked uint64        // it covers our events up to this number
	pacing
	askAgain time.Time     // for a refill
	owed     uint64        // it wants a notification when we cover its events up to this number
	pushed   []sent        // sent pushes that are not acknowledged yet
	inFlight int           // bytes of pushed
	kept     causal.Vector // the last vector that it reported before it began to leave
	parts    bool          // it has said that it is leaving
	heardOf  uint64        // digest of seenThen
	seenThen causal.Vector // the last vector that it sent in full
	toldOf   uint64        // digest of the last vector that was sent to it in full
	vote     stateVote     // how its state differed from ours when the vectors were last equal
	// digest of its times to live; this replica's until it has reported one
	expiry uint32
	dated  bool // it has reported that digest
}

type sent struct {
	n    uint64
	size int
}

// take records that p has seen v. Small vectors are collected in news, since raising a few entries
// of a large vector costs more.
func (p *peer) take(v causal.Vector) {
	if v.Len() > bases.Few || p.news.Len() > bases.Few {
		p.seen = v.Join(p.vector())
	} else {
		p.news = p.news.Join(v)
	}
}

// vector returns the vector that p is known to have seen.
func (p *peer) vector() causal.Vector {
	p.seen, p.news = p.seen.Join(p.news), causal.Vector{}
	return p.seen
}

// acknowledged records that p covers our events up to n.
func (p *peer) acknowledged(n uint64) {
	p.acked = max(p.acked, n)
	i := 0
	for ; i < len(p.pushed) && p.pushed[i].n <= n; i++ {
		p.inFlight -= p.pushed[i].size
	}
	if rest := p.pushed[i:]; len(rest) <= i {
		p.pushed = append(p.pushed[:0], rest...) // reuses the space in front
	} else {
		p.pushed = rest
	}
}

// keeps records the vector that p has reported. If p starts to leave later, it hands that over.
func (p *peer) keeps(v causal.Vector) {
	if !p.parts && p.kept.Leq(v) {
		p.kept = v
	}
}

// differs reports whether p's memory may hold something that the memory with a digest does not.
func (p *peer) differs(memory uint64) bool {
	return p.replica != 0 && p.spoke && p.memory != memory && p.memory != 0 && p.memory != p.merged
}

// peerVote is what a peer has said under the current memory [M1], and the member that it is in that
// memory.
type peerVote struct {
	name     string // its member's name in the memory; empty: it has none
	votes    bool   // it is the present incarnation of a member that counts and stays
	goes     bool   // it is the present incarnation of a member that is going
	joins    bool   // it is the present incarnation of a member that has never counted
	memory   uint64 // digest of its own memory, as last reported
	spoke    bool   // it has reported a memory
	turned   bool   // its memory has become equal to this replica's: ask it again
	leaving  bool
	vouches  bool          // it has said, as a replica that counts, what it covers:
	counted  uint64        // this replica's events up to this one,
	sure     causal.Vector // and this vector
	gave     bool          // it has answered a request since this replica started, or was removed
	answered bool          // it has answered one under this memory, as a replica that counts
	refilled bool          // it has answered one under this memory, counting or not
	entering bool          // its answer said that it is a new member that has not counted yet
	whole    bool          // its answer said that its disk has all it ever acknowledged
	resigned bool          // it says that it counted when it was marked as going
	merged   uint64        // digest of its memory when it was last merged into ours
	said     said
	least    uint32 // its MinMembers, as last reported; 0 if it counts in no quorum
	titled   bool   // it has reported its MinMembers
	unequal  bool   // its MinMembers differ, and that was reported
	heardAt  time.Time
}

// said is the last heartbeat with a vector. If this replica has the same memory and covers that
// vector, it says the same as an answer to a request.
type said struct {
	memory   uint64
	seen     causal.Vector
	ready    bool
	entering bool
	kept     bool
}

// under reports whether it was sent under a memory.
func (s said) under(memory uint64) bool { return s.memory == memory && memory != 0 }

// covered reports whether it was sent under a memory, with a vector that seen covers.
func (s said) covered(memory uint64, seen causal.Vector) bool {
	return s.under(memory) && s.seen.Leq(seen)
}

// counts reports whether p is the present incarnation of a member that quorums are counted over.
func (v *peerVote) counts() bool { return v.votes || v.goes }

// titles records the MinMembers of the member.
func (v *peerVote) titles(least uint32) {
	v.unequal = v.unequal && v.least == least
	v.titled, v.least = true, least
}

// silence forgets everything said under another memory.
func (v *peerVote) silence() {
	v.vouches, v.counted, v.sure = false, 0, causal.Vector{}
	v.answered, v.refilled, v.entering, v.resigned, v.whole = false, false, false, false, false
}

// speaks reports whether p's word counts: p stays, and has said what it covers.
func (p *peer) speaks() bool { return p.votes && p.ready && p.vouches }

// helps reports whether p's word counts in a removal. Members that are going help as well: they no
// longer acknowledge anything, so what a majority of all had seen contains every write from before
// the mark.
func (p *peer) helps() bool { return p.speaks() || p.goes && p.resigned && p.vouches }

// covers reports whether p counts and has said, under the present memory, that it covers v. The
// vector that a replica covers only grows.
func (p *peer) covers(v causal.Vector) bool { return p.speaks() && v.Leq(p.sure) }
