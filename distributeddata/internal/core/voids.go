package core

import (
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
)

// voids decides which marks are no longer needed [R15].
type voids struct {
	history *history.History
	peers   peers
	members *members
	formers *formers
	ready   bool                    // this replica counts, or may
	known   map[causal.Replica]bool // whether a replica has departed, found out once
}

// void reports whether a mark is no longer needed [R15]. A later chain of the slot's owner
// makes it void. So does the owner's own knowledge of the reset once all of its events from before
// that are here. An owner that has gone learns of nothing: its mark is void once every member
// covers the reset, and none has an event of the owner that is not here.
func (v *voids) void(s causal.Store, path string, m causal.Mark) bool {
	owner, ok := causal.SlotOwner(path)
	if !ok {
		return true
	}
	if e, live := s.Get(path); live {
		t, err := causal.ParseTotal(e.First().Payload)
		return err == nil && t.Since > m.N
	}
	if v.history.Mine(owner) {
		return true // it has seen the reset, and has nothing in flight
	}
	if p := v.peers.at(owner); p != nil {
		return p.vector().Covers(m.By) && v.history.Seen().Get(owner) >= p.vector().Get(owner)
	}
	return v.departed(owner) && v.allCover(m.By, owner)
}

// departed reports whether a replica has not run for any member for so long that none of its
// messages can be in flight, no event of it has arrived for as long, and it will not come back with
// events that no other member has.
func (v *voids) departed(r causal.Replica) bool {
	is, known := v.known[r]
	if !known {
		is = v.finds(r)
		v.known[r] = is
	}
	return is
}

func (v *voids) finds(r causal.Replica) bool {
	if at := v.members.At(r); at.Rank != quorum.Absent &&
		(at.Rank != quorum.Gone || v.members.MayReturn(at)) {
		return false
	}
	return v.ready && v.formers.quiet(r, v.history.Seen().Get(r))
}

// allCover reports whether all members, those in view and those that are remembered and not gone,
// cover the event d and have no event of r that is not here.
func (v *voids) allCover(d causal.Dot, r causal.Replica) bool {
	n := v.history.Seen().Get(r)
	for _, p := range v.peers {
		if p.replica == 0 || !p.vector().Covers(d) || p.vector().Get(r) > n {
			return false
		}
	}
	return !slices.ContainsFunc(v.members.Members(), func(m quorum.Member) bool {
		return m.Rank != quorum.Gone && m.Rank != quorum.Absent && m.Name != v.members.Own().Name &&
			v.peers.at(m.Inc.Replica) == nil
	})
}
