package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/sim"
)

// The incarnations of the members of a history.

func (s *play) start(sl *slot) {
	sl.coming = false
	sl.incarnation, sl.fuse, sl.broke, sl.skew = sl.incarnation+1, 0, false, s.clock()
	if sl.name = fmt.Sprintf("m%d.%d", sl.i, sl.incarnation); s.sameIDs {
		sl.name = fmt.Sprintf("m%d", sl.i)
	}
	sl.shows, sl.texts, sl.last, sl.has = nil, map[string]*shownText{}, causal.Vector{}, nil
	if sl.past != nil {
		sl.core, sl.past = s.goOn(sl, sl.past), nil
	} else {
		sl.core, sl.misled = New(s.config(sl)), false
		s.age(sl)
		s.loadSoon(sl)
	}
	sl.wake, sl.leaving, sl.restored, sl.lacks = time.Time{}, 0, false, nil
	s.w.Note("start %s %v", sl.id(), sl.core.Replica())
	sl.told, sl.calls = map[string]string{}, map[uint64]bool{}
	for key := range sl.core.Keys().All() {
		s.tell(sl, []string{strings.Clone(key)})
	}
	s.readNames(sl)
	s.tellViews(1500 * time.Millisecond)
	s.tellView(sl)
}

// clock returns the clock error of an incarnation that begins: ahead of or behind the clock of the
// previous incarnation.
func (s *play) clock() time.Duration {
	if !s.badClocks {
		return 0
	}
	ahead := s.w.Span("ahead", 0, time.Hour)
	if s.w.Chance("behind", 1./2) {
		return -ahead
	}
	return ahead
}

// tellViews gives every running member a view, within a while.
func (s *play) tellViews(within time.Duration) {
	for _, o := range s.running() {
		s.w.After(s.w.Span("view", 0, within), func() { s.tellView(o) })
	}
}

// age gives a member that starts with the history the past of its cluster, of which only its vector
// is left, and often a base of its own.
func (s *play) age(sl *slot) {
	if s.past == 0 || sl.incarnation > 1 {
		return
	}
	var dots, some []causal.Dot
	share := s.w.Number("known", 0, 4)
	for i := range s.past {
		d := causal.Dot{Replica: causal.Replica(i+1) * 1_000_003, N: uint64(i%2 + 1)}
		if dots = append(dots, d); i%4 < share {
			some = append(some, d)
		}
		for n := range d.N {
			s.events[causal.Dot{Replica: d.Replica, N: n + 1}] = &eventOf{}
		}
	}
	joins(sl.core, history.State{Seen: causal.MakeVector(dots...)})
	if len(some) > 0 {
		sl.core.bases.Use(sl.core.now, causal.MakeVector(some...), sl.core.Seen())
	}
}

// kill stops a member for a while: kill MEMBER for TIME. At most a minority fails before it has
// been refilled; beyond that nothing is promised.
func (s *play) kill(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || (!s.disks || s.behind) && !s.mayFail(sl) {
		return
	}
	if !sl.core.Ready() {
		s.happened["kills during a refill"]++
	}
	s.end(sl)
	s.tellViews(3 * time.Second)
	s.comeBack(sl, a.Span(2))
}

// end ends a member, and the data that only it holds.
func (s *play) end(sl *slot) {
	s.count(sl)
	s.forget(sl)
	if s.flux != nil && s.disks {
		s.flux.known = s.flux.known.Merge(s.memory())
	}
	sl.core, sl.mine, sl.leaving, sl.restored, sl.lacks = nil, nil, 0, false, nil
	s.crashDisk(sl)
	if s.flux != nil && s.disks && sl.disk.counts {
		s.endNewMembers()
	}
}

// forget records that the updates of an open event were never made.
func (s *play) forget(sl *slot) {
	for _, d := range sl.open {
		d.never = true
	}
	if len(sl.open) > 0 {
		s.settleEvent(sl)
	}
}

// leave makes a member leave in order, and come back empty after a while: leave MEMBER for TIME.
// This does not count as a failure. If its data was not handed over in time, it goes to its next
// incarnation.
func (s *play) leave(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || sl.leaving != 0 {
		return
	}
	sl.leaving, sl.away = s.call(sl), a.Span(2)
	sl.handed = sl.shows.join(sl.done())
	s.step(sl, Drain{ID: sl.leaving, Leave: s.flux != nil,
		Deadline: s.now(sl).Add(5 * time.Second)})
}

// left ends a member that has waited to leave.
func (s *play) left(sl *slot, short bool) {
	away := sl.away
	sl.leaving = 0
	s.w.Note("%s leaves, short %t", sl.id(), short)
	if s.flux != nil && sl.core.members.Own().Rank != quorum.Gone && !s.mayFail(sl) {
		sl.past, sl.core = sl.core, nil
		s.start(sl) // at once: too few would run without it
		return
	}
	if short {
		sl.past, sl.core = sl.core, nil
	} else {
		s.happened["leaves handed over"]++
		if s.flux == nil || s.handsOver(sl) {
			s.acked = s.acked.join(sl.handed) // a majority of the rest has it
		}
		if s.flux != nil && sl.core.members.Own().Rank == quorum.Gone {
			s.happened["members that left"]++
		}
		s.end(sl)
	}
	s.tellViews(3 * time.Second)
	s.comeBack(sl, away)
}

// again ends the incarnation of a member, and begins its next one after a while: again MEMBER for
// TIME. This does not count as a failure, since the next incarnation gets the data.
func (s *play) again(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || s.flux != nil && !s.mayFail(sl) {
		return
	}
	s.goAgain(sl, a.Span(2))
}

func (s *play) goAgain(sl *slot, after time.Duration) {
	sl.past, sl.core = sl.core, nil
	s.w.Note("%s ends its incarnation", sl.id())
	s.tellViews(3 * time.Second)
	sl.coming = true
	s.w.After(after, func() { s.startIfItMay(sl) })
}

// goOn begins the next incarnation of a member, and asserts that it holds everything that the
// previous one did.
func (s *play) goOn(sl *slot, past *Core) *Core {
	s.happened["incarnations continued"]++
	was, held := past.Replica(), s.namesIn(past.Keys(), nil).join(sl.done())
	next := past.Again(s.config(sl))
	switch {
	case next.Ready():
		s.w.Fail("%s counts in quorums before it has been refilled", sl.id())
	case next.Replica() == was:
		s.w.Fail("%s goes on under the id of its former incarnation", sl.id())
	}
	if lost := held.without(s.namesIn(next.Keys(), nil)); len(lost) > 0 && !s.thawed {
		s.w.Fail("%s lost what its former incarnation held: %v", sl.id(), lost)
	}
	sl.mine, sl.open = sl.mine.join(sl.done()), nil
	return next
}

// tellView gives a member the view of all running members, sometimes without one of them.
func (s *play) tellView(sl *slot) {
	if sl.core == nil {
		return
	}
	var others []Member
	for _, o := range s.running() {
		if o.i != sl.i && o.core != nil && !s.unseen(sl) {
			others = append(others, Member{ID: o.id(), Address: o.member})
		}
	}
	s.step(sl, View{Others: others})
}
