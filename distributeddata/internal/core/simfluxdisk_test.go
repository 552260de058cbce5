package core

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/sim"
)

// Histories of members with disks that come and go: machines are lost with their disks and replaced
// under their names or under others, and all lose power at once and come back in any order. While a
// majority of the counted members has its disks, nothing acknowledged is lost; and when these are
// back, all become ready, whatever else has started before them.

// makeFluxDisks generates the events of disks.
func (s *play) makeFluxDisks(r *rand.Rand) {
	at := func() time.Duration { return warm + s.w.Moment(span) }
	spell := func() time.Duration { return time.Duration(500+r.IntN(9000)) * time.Millisecond }
	for range 1 + r.IntN(3) {
		s.w.Act(at(), "blackout", "for", spell())
	}
	for range r.IntN(3) {
		s.w.Act(at(), "fill", r.IntN(places), "for", spell())
	}
	for range r.IntN(3) {
		s.w.Act(at(), "fail", r.IntN(places))
	}
}

// noteCounting records that a disk has what its member needs to count again after a restart.
func (s *play) noteCounting(sl *slot) {
	d := &sl.disk
	if s.flux == nil || d.counts || sl.core == nil || !sl.core.Ready() {
		return
	}
	m, err := decodeMemory(d.rows[rowMembers])
	own := m.Of(sl.member)
	h, bad := decodeHeader(d.rows[rowHeader])
	d.counts = err == nil && bad == nil && h.kept && own.Rank == quorum.In &&
		own.Inc == sl.core.members.inc
}

// intact counts the members that have one of the ranks in m and run, or will start, with their
// disks, except one. Those that were forgotten, and enter once more, are new members.
func (s *play) intact(m quorum.Memory, but *slot, ranks ...quorum.Rank) (n int) {
	for _, sl := range s.slots {
		if sl != but && sl.disk.counts && slices.Contains(ranks, m.Of(sl.member).Rank) &&
			(sl.past != nil || sl.coming || sl.core != nil && !sl.core.members.entering) {
			n++
		}
	}
	return n
}

// live reports whether all must become ready: a majority of the disks is there, among the counted
// members, of which some are going, and among those that stay.
func (s *play) live() bool {
	m := s.memory()
	return s.intact(m, nil, quorum.In, quorum.Going) >= s.majority() &&
		s.intact(m, nil, quorum.In) >= quorum.MajorityOf(max(m.Count(quorum.In), s.flux.least))
}

// replaceDisk decides what becomes of a member that has ended: it starts again with its disk; its
// disk is lost, and it starts with an empty one, under its name or another; or it does not start
// again, which replaceDisk reports. At most a minority of the disks is lost.
func (s *play) replaceDisk(sl *slot) (ended bool) {
	if sl.past != nil {
		return false
	}
	if !sl.disk.counts {
		return false
	}
	if !s.w.Chance("lost", 1./3) {
		return false
	}
	// What only the dead know may be lost.
	for _, m := range []quorum.Memory{s.memory(), s.flux.known} {
		if s.intact(m, sl, quorum.In) < s.majorityIn(m) {
			return false
		}
	}
	s.happened["disks lost"]++
	switch s.w.Number("replaced by", 0, 3) {
	case 0:
		sl.disk = simDisk{incarnation: sl.disk.incarnation + 1}
		return true
	case 1:
		sl.disk = simDisk{incarnation: sl.disk.incarnation + 1}
	default:
		s.flux.baptize(sl)
	}
	return false
}

// mayStart reports whether a process may start. New members that start while the others are away
// must not be enough for a cluster of their own [M6].
func (s *play) mayStart(sl *slot) bool {
	return sl.disk.counts || s.flux.known.Merge(s.memory()).Counted() == 0 ||
		s.newMembers()+1 < s.flux.least || s.voters(nil) >= s.majority()
}

// newMembers counts the processes that have not counted yet.
func (s *play) newMembers() (n int) {
	for _, sl := range s.slots {
		if !sl.disk.counts && (sl.core != nil || sl.past != nil) {
			n++
		}
	}
	return n
}

// endNewMembers ends the new members if they could be a cluster of their own while the others are
// away.
func (s *play) endNewMembers() {
	if s.voters(nil) >= s.majority() || s.newMembers() < s.flux.least {
		return
	}
	for _, sl := range s.slots {
		if sl.core != nil && !sl.disk.counts {
			s.end(sl)
		}
	}
}

// TestHistories_WhereDisksComeBack plays histories of members with disks that come and go.
func TestHistories_WhereDisksComeBack(t *testing.T) {
	s := *seeds
	s.Count = max(1, s.Count/2)
	histories(t, s, func(w *sim.World) *play {
		s := newFluxPlay(w).onDisks()
		s.makeFluxDisks(w.Rand())
		s.runFlux()
		if s.live() {
			s.happened["ends with a majority of the disks"]++
		}
		return s
	}, "acknowledged writes", "reads checked", "disks lost", "ends with a majority of the disks",
		"full disks", "failed syncs", "crashes", "blackouts")
}
