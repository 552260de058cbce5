package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// These are short tests of rules that seeded histories exercise too rarely. Member a is the one
// under test.

var (
	a = core.Member{ID: "a", Incarnation: 1}
	b = core.Member{ID: "b", Incarnation: 1}
	c = core.Member{ID: "c", Incarnation: 1}
)

type stepper interface {
	Step(time.Time, core.Event) []core.Effect
}

// story steps a core one millisecond at a time. Messages for entities of shard 0 come by its lane;
// effects for the lane are left out.
type story struct {
	core stepper
	now  time.Time
	in   lane.In
}

func tell(s stepper) *story {
	st := &story{core: s, now: time.Unix(1000, 0)}
	st.step(core.View{Self: a, Members: []core.Member{a, b, c}})
	return st
}

func (s *story) step(ev core.Event) []core.Effect {
	s.now = s.now.Add(ms)
	var effects, answers []core.Effect
	for _, e := range slices.Clone(s.core.Step(s.now, ev)) {
		a, ok := e.(core.Admit)
		if !ok {
			effects = append(effects, e)
		} else if counted, ok := s.in.Admit(a); ok {
			answers = append(answers, s.step(counted)...)
		}
	}
	return append(effects, answers...)
}

func (s *story) hear(from core.Member, m core.Message) []core.Effect {
	if d, ok := m.(core.Data); ok && s.in.Take(from, d) >= lane.Accepted {
		return s.step(core.Arrived{From: from, Data: d})
	}
	return s.step(core.Received{From: from, Message: m})
}

// assigned is the Table of the coordinator at c, in its epoch 5, that assigns shard 0 to home.
func assigned(n uint64, home core.Member, before ...core.Member) core.Table {
	return core.Table{Epoch: 5, N: n, Entries: []core.Entry{{Shard: 0, Assignment: core.Assignment{
		Version: core.Version{Epoch: 5, N: n}, Home: home, Before: before}}}}
}

// S5: the shard has been assigned to another member by the time the attempt is granted.
func TestShard_GivesBackAGrantThatIsNotWantedAnyMore(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	require.Contains(t, s.hear(c, assigned(1, a)), core.Acquire{Shard: 0, Attempt: 1})
	free := core.Tell{To: b, Message: core.Free{Shard: 0, Version: core.Version{Epoch: 5, N: 2}}}
	require.NotContains(t, s.hear(c, assigned(2, b, a)), free, "an attempt is under way")
	require.Contains(t, s.step(core.Held{Shard: 0, Attempt: 1, Token: 7}),
		core.Release{Shard: 0, Token: 7})
	free.Message = core.Free{Shard: 0, Version: core.Version{Epoch: 5, N: 2}, Blank: core.Blank{
		Version: "v", Token: 7}}
	require.Contains(t, s.step(core.Released{Shard: 0, Token: 7, Certain: true, Blank: core.Blank{
		Version: "v", Token: 7}}), free)
}

// S10: a delayed announcement does not reopen a tenure.
func TestRoute_ATenureThatWasPausedStaysSo(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(b, core.Active{Shard: 0, Token: 7})
	require.Contains(t, s.hear(b, core.Pause{Shard: 0, Token: 7}), core.Shut{Shard: 0})
	require.Empty(t, s.hear(b, core.Active{Shard: 0, Token: 7}), "messages wait")
	require.Contains(t, s.hear(c, core.Active{Shard: 0, Token: 8}),
		core.Open{Shard: 0, Host: c, Token: 8})
}

// reports returns the report of a member that has heard the coordinator and has these shards.
func reports(epoch uint64, active ...core.Tenure) core.Report {
	return core.Report{Epoch: epoch, Active: active}
}

func homes(effects []core.Effect) (said []core.Assigned) {
	for _, e := range effects {
		if e, ok := e.(core.Assigned); ok {
			said = append(said, e)
		}
	}
	return said
}

// S7: a member that has not been heard yet may have a shard that no other member knows of.
func TestAllocation_ListensBeforeItDecides(t *testing.T) {
	s := tell(core.NewAllocation(config(2), 5, nil))
	s.hear(a, reports(5))
	s.hear(b, reports(5))
	s.now = s.now.Add(300 * ms)
	require.Empty(t, homes(s.step(core.Wake{})), "c has not reported")
	s.hear(c, reports(5, core.Tenure{Shard: 1, Token: 9}))
	s.now = s.now.Add(300 * ms)
	said := homes(s.step(core.Wake{}))
	require.Len(t, said, 2)
	require.Equal(t, c, said[1].Home, "who has a shard keeps it")
}

// S7b: b is in the view and has shard 0; its report to a new coordinator was lost.
func TestAllocation_UnheardHomeKeepsItsShards(t *testing.T) {
	s := tell(core.NewAllocation(config(1), 6, nil))
	s.step(core.Known{Entries: assigned(1, b).Entries})
	s.hear(a, reports(6))
	s.hear(c, reports(6))
	for range 9 {
		s.now = s.now.Add(250 * ms)
		require.Empty(t, homes(s.hear(a, reports(6))), "as long as of one that was heard")
	}
	s.now = s.now.Add(500 * ms)
	require.Len(t, homes(s.hear(a, reports(6))), 1)
}

// S6c: an assignment of an earlier coordinator arrives from c after a has agreed.
func TestAllocation_TellsWhatCameLateToThoseThatAgreed(t *testing.T) {
	s := tell(core.NewAllocation(config(2), 6, nil))
	s.hear(a, reports(6))
	s.hear(b, reports(6))
	s.hear(c, reports(6))
	s.now = s.now.Add(300 * ms)
	require.Len(t, homes(s.step(core.Wake{})), 2)
	agreed := core.Report{Epoch: 6, N: 2, Sum: sumSaid(t, s)}
	s.hear(a, agreed)
	late := assigned(9, b).Entries
	late[0].Version.Epoch = 7 // for a moment, neither of two coordinators knows the other
	s.hear(c, core.Report{Epoch: 6, Entries: late})
	s.hear(a, agreed)
	s.now = s.now.Add(300 * ms)
	for _, e := range s.step(core.Wake{}) {
		if to, ok := e.(core.Tell); ok && to.To == a {
			require.Contains(t, to.Message.(core.Table).Entries, late[0])
			return
		}
	}
	t.Fatal("a is told nothing")
}

// beat steps a coordinator to its next Table, and returns that to a and the new homes.
func (s *story) beat(t *testing.T) (core.Table, []core.Assigned) {
	t.Helper()
	s.now = s.now.Add(config(1).Beat)
	effects := s.step(core.Wake{})
	for _, e := range effects {
		if to, ok := e.(core.Tell); ok && to.To == a {
			return to.Message.(core.Table), homes(effects)
		}
	}
	t.Fatal("a is told nothing")
	return core.Table{}, nil
}

// served returns a coordinator that has assigned shard 0 to a.
func served(t *testing.T) *story {
	s := tell(core.NewAllocation(config(1), 5, nil))
	s.hear(b, core.Report{Epoch: 5, Beat: 1})
	s.hear(c, core.Report{Epoch: 5, Beat: 1})
	s.hear(a, core.Report{Epoch: 5, Beat: 1, Active: []core.Tenure{{Shard: 0, Token: 9}}})
	_, said := s.beat(t)
	require.Len(t, said, 1)
	require.Equal(t, a, said[0].Home)
	return s
}

// S8b: a said that its store failed; later reports that its store answers have arrived before.
func TestAllocation_AnOvertakenReportDoesNotCount(t *testing.T) {
	s := served(t)
	first, _ := s.beat(t)
	second, _ := s.beat(t)
	has := []core.Tenure{{Shard: 0, Token: 9}}
	s.hear(a, core.Report{Epoch: 5, Beat: second.Beat, Active: has})
	for _, late := range []core.Report{
		{Epoch: 5, Beat: first.Beat, Active: has, Failing: true},
		{Epoch: 5, Beat: first.Beat, Active: has, Leaving: true},
		{Epoch: 5, Beat: second.Beat, Active: has, Failing: true}, // of two, the first counts
		{Epoch: 4, Beat: second.Beat + 1, Failing: true},          // to another coordinator
		{Epoch: 5, Beat: second.Beat + 10, Failing: true},         // there was no such table
	} {
		s.hear(a, late)
		third, said := s.beat(t)
		require.Empty(t, said, "%+v", late)
		s.hear(a, core.Report{Epoch: 5, Beat: third.Beat, Active: has})
		s.hear(b, core.Report{Epoch: 5, Beat: third.Beat})
	}
	newest, _ := s.beat(t)
	s.hear(a, core.Report{Epoch: 5, Beat: newest.Beat, Active: has, Failing: true})
	_, said := s.beat(t)
	require.Len(t, said, 1, "the newest counts")
}

// Entries are true at any time.
func TestAllocation_MergesTheEntriesOfAnOvertakenReport(t *testing.T) {
	alloc := core.NewAllocation(config(1), 5, nil)
	s := tell(alloc)
	s.hear(a, core.Report{Epoch: 5, Beat: 1})
	entries := assigned(9, b).Entries
	s.hear(a, core.Report{Epoch: 4, Beat: 1, Entries: entries})
	require.Equal(t, b, alloc.Home(0).Home)
}

// S8b: a was out of view. Its answer from before that does not show that it is back.
func TestAllocation_ReportBeforeTheReturnIsIgnored(t *testing.T) {
	s := served(t)
	earlier, _ := s.beat(t)
	said := homes(s.step(core.View{Self: c, Members: []core.Member{c, b}}))
	require.Len(t, said, 1)
	s.hear(said[0].Home, core.Report{Epoch: 5, Active: []core.Tenure{{Shard: 0, Token: 10}}})
	s.step(core.View{Self: c, Members: []core.Member{c, b, a}})
	move := core.Move{Shard: 0, To: a}
	s.hear(a, core.Report{Epoch: 5, Beat: earlier.Beat})
	require.Empty(t, homes(s.step(move)))
	now, _ := s.beat(t)
	s.hear(a, core.Report{Epoch: 5, Beat: now.Beat})
	require.Len(t, homes(s.step(move)), 1)
}

// S8c: a report without a list is about the list with its sum, and about no other.
func TestAllocation_ASumStandsForItsListOnly(t *testing.T) {
	s := served(t)
	has := func(table core.Table) core.Report {
		r := tell(core.NewRegion(config(1)))
		r.hear(c, assigned(1, a))
		r.step(core.Held{Shard: 0, Attempt: 1, Token: 9})
		return answer(t, r.hear(c, table))
	}
	table := told(t, s, a)
	same := has(table)
	require.Nil(t, same.Active, "the coordinator has the list")
	require.Equal(t, table.Held, same.Held)
	table.Held++
	require.Len(t, has(table).Active, 1, "the coordinator has another list")

	alloc := s.core.(*core.Allocation)
	s.hear(a, same)
	s.step(core.Move{Shard: 0, To: b})
	require.Equal(t, b, alloc.Home(0).Home, "it has arrived at a")

	s = served(t)
	alloc = s.core.(*core.Allocation)
	s.hear(a, core.Report{Epoch: 5, Beat: told(t, s, a).Beat}) // the tenure has ended
	next := told(t, s, a)
	require.Zero(t, next.Held)
	stale := same
	stale.Beat = next.Beat
	s.hear(a, stale)
	require.Zero(t, told(t, s, a).Held, "it does not stand for a list from before")
	s.step(core.Move{Shard: 0, To: b})
	require.Equal(t, a, alloc.Home(0).Home, "it has not arrived again")

	for _, before := range []*core.Allocation{nil, alloc} {
		s.core = core.NewAllocation(config(1), 5, before)
		s.step(core.View{Self: c, Members: []core.Member{a, b, c}})
		require.Zero(t, told(t, s, a).Held, "a coordinator begins without lists")
	}
}

// told returns the next Table for a member.
func told(t *testing.T, s *story, to core.Member) core.Table {
	s.now = s.now.Add(config(1).Beat)
	for _, e := range s.step(core.Wake{}) {
		if e, ok := e.(core.Tell); ok && e.To == to {
			return e.Message.(core.Table)
		}
	}
	require.Fail(t, "no table")
	return core.Table{}
}

// answer returns the report among effects.
func answer(t *testing.T, effects []core.Effect) core.Report {
	for _, e := range effects {
		if e, ok := e.(core.Tell); ok {
			if r, ok := e.Message.(core.Report); ok {
				return r
			}
		}
	}
	require.Fail(t, "no report")
	return core.Report{}
}

// A member of a version that does not number reports is heard.
func TestAllocation_UnnumberedReportsCountOnArrival(t *testing.T) {
	s := served(t)
	for _, failing := range []bool{false, true} {
		s.hear(b, core.Report{Epoch: 5})
		s.hear(a, core.Report{Epoch: 5, Failing: failing})
		_, said := s.beat(t)
		require.Equal(t, failing, len(said) == 1)
	}
}

// A coordinator that was made again under its tenure repeats no version and no number of a Table.
func TestAllocation_GoesOnCountingUnderATenure(t *testing.T) {
	first := core.NewAllocation(config(1), 5, nil)
	s := tell(first)
	s.hear(a, core.Report{Epoch: 5, Beat: 1})
	s.hear(b, core.Report{Epoch: 5, Beat: 1})
	s.hear(c, core.Report{Epoch: 5, Beat: 1})
	last, said := s.beat(t)
	require.Len(t, said, 1)

	again := func(epoch uint64) core.Table {
		s.core = core.NewAllocation(config(1), epoch, first)
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}})
		table, _ := s.beat(t)
		return table
	}
	next := again(5)
	require.Greater(t, next.Beat, last.Beat)
	require.Equal(t, last.N, next.N)
	for _, m := range []core.Member{a, b, c} {
		s.hear(m, core.Report{Epoch: 5, Beat: next.Beat})
	}
	_, said = s.beat(t)
	require.Len(t, said, 1)
	require.Equal(t, last.N+1, said[0].Version.N)
	require.Less(t, again(6).Beat, next.Beat, "of another tenure")
}

// A region that says to agree with assignments that were never made is sent the whole table.
func TestAllocation_TellsAllToARegionClaimingTooMuch(t *testing.T) {
	s := served(t)
	s.hear(a, core.Report{Epoch: 5, N: 1 << 40, Sum: 1})
	table, _ := s.beat(t)
	require.Len(t, table.Entries, 1)
}

// S8b: a Table that was overtaken does not lower the number of the report, which is newer than the
// answer to the later Table.
func TestRegion_ReportsTheLargestBeat(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	beat := func(epoch, n uint64) uint64 {
		effects := s.hear(c, core.Table{Epoch: epoch, Beat: n})
		return effects[len(effects)-1].(core.Tell).Message.(core.Report).Beat
	}
	require.Zero(t, beat(5, 0))
	require.EqualValues(t, 7, beat(5, 7))
	require.EqualValues(t, 7, beat(5, 6))
	require.EqualValues(t, 2, beat(6, 2))
}

// sumSaid returns the sum in the coordinator's Table.
func sumSaid(t *testing.T, s *story) uint64 {
	t.Helper()
	s.now = s.now.Add(300 * ms)
	for _, e := range s.step(core.Wake{}) {
		if to, ok := e.(core.Tell); ok {
			return to.Message.(core.Table).Sum
		}
	}
	t.Fatal("no table")
	return 0
}

// S19: a shard that is moving from a to b is assigned to c: both a and b may still have it.
func TestAllocation_NamesAllThatMayHaveAShard(t *testing.T) {
	s := tell(core.NewAllocation(config(1), 5, nil))
	has := reports(5, core.Tenure{Shard: 0, Token: 9})
	s.hear(a, has)
	s.hear(b, reports(5))
	s.hear(c, reports(5))
	s.now = s.now.Add(300 * ms)
	require.Equal(t, a, homes(s.step(core.Wake{}))[0].Home)
	said := homes(s.step(core.Move{Shard: 0, To: b}))
	require.Len(t, said, 1)
	require.Equal(t, []core.Member{a}, said[0].Before)
	require.Empty(t, homes(s.step(core.Move{Shard: 0, To: c})), "it has not arrived")
	s.hear(b, core.Report{Epoch: 5, Leaving: true})
	s.hear(a, core.Report{Epoch: 5, Leaving: true})
	s.now = s.now.Add(300 * ms)
	said = homes(s.step(core.Wake{}))
	require.Len(t, said, 1)
	require.Equal(t, c, said[0].Home)
	require.Equal(t, []core.Member{b, a}, said[0].Before)
}

// Bad input: messages about shards that do not exist, messages from strangers, and assignments
// without a home change nothing.
func TestRegion_IgnoresWhatItCannotUse(t *testing.T) {
	r := core.NewRegion(config(1))
	s := tell(r)
	stranger := core.Member{ID: "b", Incarnation: 2}
	for _, shard := range []int{-1, 1, 1 << 30} {
		for _, m := range []core.Message{core.Active{Shard: shard, Token: 1},
			core.Data{Shard: shard, Token: 1, Number: 1},
			core.Pause{Shard: shard}, core.Where{Shard: shard}, core.Free{Shard: shard},
			core.AskFree{Entry: core.Entry{Shard: shard}}} {
			require.Empty(t, s.hear(b, m))
		}
	}
	require.Empty(t, s.hear(stranger, assigned(1, a)))
	require.Empty(t, s.hear(stranger, core.Active{Shard: 0, Token: 1}))
	s.hear(b, assigned(1, core.Member{}))
	require.Zero(t, r.Home(0))
	s.hear(b, assigned(2, a))
	old := assigned(9, b)
	old.Epoch = 4
	require.Empty(t, s.hear(b, old), "of a coordinator that is over")
	require.Equal(t, a, r.Home(0).Home)
}

// balanced returns a coordinator at a that has assigned four shards while c was not in the view;
// the shards have arrived.
func balanced(cfg core.Config) *story {
	s := &story{core: core.NewAllocation(cfg, 5, nil), now: time.Unix(1000, 0)}
	s.step(core.View{Self: a, Members: []core.Member{a}})
	s.hear(a, reports(5))
	s.now = s.now.Add(300 * ms)
	s.step(core.Wake{})
	s.step(core.View{Self: a, Members: []core.Member{a, b}})
	s.hear(a, reports(5, core.Tenure{Shard: 0, Token: 1}, core.Tenure{Shard: 1, Token: 1},
		core.Tenure{Shard: 2, Token: 1}, core.Tenure{Shard: 3, Token: 1}))
	s.hear(b, reports(5))
	return s
}

// S27: here shards move one at a time, and only after the view has been unchanged for a second.
func TestAllocation_MovesForBalanceAFewAtATime(t *testing.T) {
	cfg := config(4)
	cfg.Moves, cfg.Stable = 1, time.Second
	s := balanced(cfg)
	s.now = s.now.Add(300 * ms)
	require.Empty(t, homes(s.step(core.Wake{})), "b has just come")
	s.now = s.now.Add(time.Second)
	said := homes(s.step(core.Wake{}))
	require.Len(t, said, 1)
	require.Equal(t, b, said[0].Home)
	require.Equal(t, 3, said[0].Shard)
	s.now = s.now.Add(300 * ms)
	require.Empty(t, homes(s.step(core.Wake{})), "it has not arrived")
	s.hear(a, reports(5, core.Tenure{Shard: 0, Token: 1}, core.Tenure{Shard: 1, Token: 1},
		core.Tenure{Shard: 2, Token: 1}))
	s.hear(b, reports(5, core.Tenure{Shard: 3, Token: 2}))
	s.now = s.now.Add(300 * ms)
	require.Len(t, homes(s.step(core.Wake{})), 1)
	s.hear(a, reports(5, core.Tenure{Shard: 0, Token: 1}, core.Tenure{Shard: 1, Token: 1}))
	s.hear(b, reports(5, core.Tenure{Shard: 2, Token: 2}, core.Tenure{Shard: 3, Token: 2}))
	s.now = s.now.Add(300 * ms)
	require.Empty(t, homes(s.step(core.Wake{})), "two each")
}

// S27: no shards move for balance while a member leaves or does not reach the store, since they
// would move back to it later.
func TestAllocation_NoBalancingWhileAMemberCannotHost(t *testing.T) {
	cfg := config(4)
	cfg.Moves, cfg.Stable = 1, time.Second
	s := balanced(cfg)
	s.step(core.View{Self: a, Members: []core.Member{a, b, c}})
	s.hear(c, core.Report{Epoch: 5, Leaving: true})
	s.now = s.now.Add(1500 * ms)
	require.Empty(t, homes(s.step(core.Wake{})))
}

// S27b: while versions differ, shards of a member that leaves go to the newest version, and none
// moves for balance.
func TestAllocation_PrefersTheNewestVersion(t *testing.T) {
	a, b, c := core.Member{ID: "a", Address: "a:1"}, core.Member{ID: "b", Address: "b:1"},
		core.Member{ID: "c", Address: "c:1"}
	for _, rendezvous := range []bool{false, true} {
		cfg := config(8)
		cfg.Moves, cfg.Stable, cfg.Rendezvous = 8, time.Second, rendezvous
		alloc := core.NewAllocation(cfg, 5, nil)
		s := &story{core: alloc, now: time.Unix(1000, 0)}
		report := func(members ...core.Member) {
			for _, m := range members {
				var has []core.Tenure
				for n := range 8 {
					if alloc.Home(n).Home == m {
						has = append(has, core.Tenure{Shard: n, Token: 1})
					}
				}
				s.hear(m, reports(5, has...))
			}
		}
		s.step(core.View{Self: a, Members: []core.Member{a, b}})
		report(a, b)
		s.now = s.now.Add(time.Second)
		require.Len(t, homes(s.step(core.Wake{})), 8)

		newest := []core.Member{c}
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}, Newest: newest})
		report(a, b, c)
		s.now = s.now.Add(1500 * ms)
		require.Empty(t, homes(s.step(core.Wake{})), "versions differ")
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}, Newest: newest})
		s.hear(b, core.Report{Epoch: 5, Leaving: true})
		s.now = s.now.Add(300 * ms)
		said := homes(s.step(core.Wake{}))
		require.NotEmpty(t, said)
		for _, e := range said {
			require.Equal(t, c, e.Home)
		}
	}
}

// S27b: while versions differ, a home that a user has named still counts, and one that the user's
// function names does not.
func TestAllocation_FollowsUsersWhileVersionsDiffer(t *testing.T) {
	for _, function := range []bool{false, true} {
		cfg := config(1)
		cfg.Moves, cfg.Consult, cfg.Again, cfg.Answer = 1, function, time.Minute, 700*ms
		alloc := core.NewAllocation(cfg, 5, nil)
		s := tell(alloc)
		s.step(core.Wishes{Round: 1, Homes: map[int]string{0: "a"}})
		s.arrived(300*ms, 1)
		s.step(core.Wishes{Round: 1, Homes: map[int]string{0: "a"}})
		s.arrived(300*ms, 1)
		require.Equal(t, []string{"a"}, decided(alloc, 1))
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}, Newest: []core.Member{c}})
		s.now = s.now.Add(time.Minute)
		s.arrived(300*ms, 1)
		s.step(core.Wishes{Round: 2, Homes: map[int]string{0: "b"}})
		s.arrived(300*ms, 1)
		want := map[bool]string{false: "b", true: "a"}[function]
		require.Equal(t, []string{want}, decided(alloc, 1))
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}})
		s.arrived(300*ms, 1)
		require.Equal(t, []string{"b"}, decided(alloc, 1), "versions are equal")
	}
}

// S26: with rendezvous hashing a member that joins gets shards of both others, and no shard moves
// between those.
func TestAllocation_RendezvousMovesOnlyToTheNewcomer(t *testing.T) {
	cfg := config(64)
	cfg.Rendezvous, cfg.Moves, cfg.Stable = true, 64, time.Second
	alloc := core.NewAllocation(cfg, 5, nil)
	s := &story{core: alloc, now: time.Unix(1000, 0)}
	a, b := core.Member{ID: "a", Incarnation: 1, Address: "a:1"},
		core.Member{ID: "b", Incarnation: 1, Address: "b:1"}
	homes := func() (out []core.Member) {
		for n := range 64 {
			out = append(out, alloc.Home(n).Home)
		}
		return out
	}
	have := func(m core.Member) (tenures []core.Tenure) {
		for n, h := range homes() {
			if h == m {
				tenures = append(tenures, core.Tenure{Shard: n, Token: 1})
			}
		}
		return tenures
	}
	d := core.Member{ID: "d", Incarnation: 1, Address: "d:1"}
	s.step(core.View{Self: a, Members: []core.Member{a, b}})
	s.hear(a, reports(5))
	s.hear(b, reports(5))
	s.now = s.now.Add(time.Second)
	s.step(core.Wake{})
	before := homes()
	require.NotEmpty(t, have(a))
	require.NotEmpty(t, have(b))

	s.step(core.View{Self: a, Members: []core.Member{a, b, d}})
	for _, m := range []core.Member{a, b, d} {
		s.hear(m, reports(5, have(m)...))
	}
	s.now = s.now.Add(1100 * ms)
	s.step(core.Wake{})
	moved := 0
	for n, h := range homes() {
		if h != before[n] {
			require.Equal(t, d, h, "shard %d moves between those that stay", n)
			moved++
		}
	}
	require.Positive(t, moved)
	require.Less(t, moved, 40)

	gone := have(d)
	s.step(core.View{Self: a, Members: []core.Member{a, b}})
	s.now = s.now.Add(300 * ms)
	s.step(core.Wake{})
	require.Len(t, gone, moved)
	require.Equal(t, before, homes(), "and goes back when it leaves")
}

// S26: 30 types of 4 shards on three members, of which one joins later.
func TestAllocation_NoMemberGetsTheOddShardOfEveryType(t *testing.T) {
	cfg := config(4)
	cfg.Moves, cfg.Stable = 4, time.Second
	members := []core.Member{{ID: "a", Incarnation: 1, Address: "10.0.0.1:7001"},
		{ID: "b", Incarnation: 1, Address: "10.0.0.2:7001"},
		{ID: "c", Incarnation: 1, Address: "10.0.0.3:7001"}}
	for first, want := range map[int][3]int{3: {40, 40, 40}, 2: {45, 45, 30}} {
		shards := map[core.Member]int{}
		for typ := range 30 {
			cfg.Type = fmt.Sprint("type-", typ)
			alloc := core.NewAllocation(cfg, 5, nil)
			s := &story{core: alloc, now: time.Unix(1000, 0)}
			for _, view := range [][]core.Member{members[:first], members} {
				s.step(core.View{Self: a, Members: view})
				for range 2 {
					for _, m := range view {
						r := reports(5)
						for n := range cfg.Shards {
							if alloc.Home(n).Home == m {
								r.Active = append(r.Active, core.Tenure{Shard: n, Token: 1})
							}
						}
						s.hear(m, r)
					}
					s.now = s.now.Add(1100 * ms)
					s.step(core.Wake{})
				}
			}
			for n := range cfg.Shards {
				shards[alloc.Home(n).Home]++
			}
		}
		for i, m := range members {
			require.InDelta(t, want[i], shards[m], 9, "of 120 shards, %d members at first", first)
		}
	}
}

// S29: if every region leaves, no shard is waited for.
func TestRegion_GivesUpWhenAllLeave(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(c, assigned(1, a))
	s.step(core.Held{Shard: 0, Attempt: 1, Token: 7})
	s.step(core.Leave{})
	over := core.Table{Epoch: 5, N: 1, Over: true}
	pause := core.Tell{To: b, Message: core.Pause{Shard: 0, Token: 7}}
	require.NotContains(t, s.hear(c, core.Table{Epoch: 5, N: 1}), pause, "another region takes it")
	require.Contains(t, s.hear(c, over), pause)
}

func TestAllocation_SaysThatAllLeave(t *testing.T) {
	s := tell(core.NewAllocation(config(1), 5, nil))
	last := func() (over bool) {
		s.now = s.now.Add(300 * ms)
		for _, e := range s.step(core.Wake{}) {
			if t, ok := e.(core.Tell); ok {
				over = t.Message.(core.Table).Over
			}
		}
		return over
	}
	for _, m := range []core.Member{a, b} {
		s.hear(m, core.Report{Epoch: 5, Leaving: true})
	}
	s.hear(c, reports(5))
	require.False(t, last())
	s.hear(c, core.Report{Epoch: 5, Leaving: true})
	require.True(t, last())
}

// S29b: the coordinator leaves as well. The next one has not heard the others yet, and knows of no
// region that leaves.
func TestRegion_TakesNoShardAgainAfterAllLeave(t *testing.T) {
	s := running(t)
	s.step(core.Leave{})
	s.hear(c, core.Table{Epoch: 5, N: 1, Over: true})
	s.hear(b, core.Table{Epoch: 6})
	require.False(t, s.core.(*core.Region).Hopeful())
	s.hear(b, core.Flush{Shard: 0, Token: 7})
	require.Contains(t, s.hear(c, core.Flush{Shard: 0, Token: 7}), core.Stop{Shard: 0, Token: 7})
	require.Contains(t, s.step(core.Ended{Shard: 0, Token: 7}), core.Release{Shard: 0, Token: 7})
	s.step(core.Released{Shard: 0, Token: 7, Certain: true})
	for range 20 {
		s.now = s.now.Add(config(1).Repeat)
		s.hear(b, core.Table{Epoch: 6})
	}
	phase, _ := s.core.(*core.Region).Phase(0)
	require.Equal(t, core.Away, phase, "although it is still the home")
}

// S29c: a region that has ended tells all members, unless it was removed.
func TestRegion_TellsThatItHasEnded(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.step(core.Leave{})
	require.ElementsMatch(t, []core.Effect{core.Tell{To: a, Message: core.Farewell()},
		core.Tell{To: b, Message: core.Farewell()}, core.Tell{To: c, Message: core.Farewell()}},
		s.step(core.Left{}))

	s = tell(core.NewRegion(config(1)))
	s.step(core.View{Self: a, Members: []core.Member{a}, Removed: true})
	require.Empty(t, s.step(core.Left{}))
}

func TestRegion_KnowsWhoHasEnded(t *testing.T) {
	r := core.NewRegion(config(1))
	s := tell(r)
	s.hear(b, core.Farewell())
	s.hear(b, core.Farewell())
	s.hear(c, core.Farewell())
	require.ElementsMatch(t, []core.Member{b, c}, r.Ended())
	s.hear(b, core.Where{Shard: 0})
	require.Equal(t, []core.Member{c}, r.Ended(), "b has another region now")
	s.step(core.View{Self: a, Members: []core.Member{a, b}})
	require.Empty(t, r.Ended())
	s.hear(c, core.Farewell())
	require.Empty(t, r.Ended(), "c is a stranger")
}

// S29c: a region that has ended owes no answer to a Pause: its messages have arrived.
func TestShard_RegionThatHasEndedOwesNothing(t *testing.T) {
	stop := core.Stop{Shard: 0, Token: 7}
	s := running(t)
	s.step(core.Leave{})
	s.hear(b, core.Farewell())
	require.NotContains(t, s.hear(c, core.Table{Epoch: 5, N: 1, Over: true}), stop)
	require.Contains(t, s.hear(c, core.Farewell()), stop)

	s = running(t)
	s.hear(b, core.Farewell())
	require.NotContains(t, s.hear(c, assigned(2, c, a)), stop)
	require.Contains(t, s.hear(c, core.Flush{Shard: 0, Token: 7}), stop)
}

// S11g: a region ends when the members have confirmed its messages, or after FlushTimeout.
func TestRegion_EndsWhenItsMessagesHaveArrived(t *testing.T) {
	begin := func() (*core.Region, *story) {
		r := core.NewRegion(config(1))
		s := tell(r)
		s.hear(c, assigned(1, b))
		s.hear(b, core.Active{Shard: 0, Token: 7})
		s.step(core.Leave{})
		return r, s
	}
	owing := true
	finished := func(r *core.Region) bool {
		return r.Finished(func(m core.Member) bool { return owing && m == b })
	}
	r, s := begin()
	ask := core.Tell{To: b, Message: core.Sent{}}
	require.Equal(t, []core.Effect{ask}, s.step(core.Finish{}))
	require.False(t, finished(r))
	s.now = s.now.Add(config(1).Repeat)
	require.Equal(t, []core.Effect{ask}, s.step(core.Wake{}))
	owing = false
	require.True(t, finished(r))
	owing = true

	r, s = begin()
	s.step(core.Finish{})
	s.hear(b, core.Farewell())
	require.True(t, finished(r), "no entity is at a member whose region has ended")

	r, s = begin()
	s.step(core.Finish{})
	s.now = s.now.Add(config(1).FlushTimeout)
	s.step(core.Wake{})
	require.True(t, finished(r), "b does not answer")
}

// S29c: a coordinator does not wait for regions that ended before it began, nor gives them shards.
func TestAllocation_DoesNotWaitForWhoHasEnded(t *testing.T) {
	var over bool
	beat := func(s *story) []core.Assigned {
		s.now = s.now.Add(300 * ms)
		effects := s.step(core.Wake{})
		for _, e := range effects {
			if t, ok := e.(core.Tell); ok {
				over = t.Message.(core.Table).Over
			}
		}
		return homes(effects)
	}
	s := tell(core.NewAllocation(config(1), 6, nil))
	s.step(core.Known{Entries: assigned(1, b).Entries})
	s.hear(b, core.Farewell())
	s.hear(c, core.Farewell())
	s.hear(a, core.Report{Epoch: 6, Leaving: true})
	require.Empty(t, beat(s))
	require.True(t, over, "all leave")

	s = tell(core.NewAllocation(config(1), 6, nil))
	s.step(core.Known{Entries: assigned(1, b).Entries})
	s.hear(b, core.Farewell())
	s.hear(c, core.Farewell())
	s.hear(a, reports(6))
	said := beat(s)
	require.Len(t, said, 1)
	require.Equal(t, a, said[0].Home)
	require.False(t, over)

	s = tell(core.NewAllocation(config(2), 6, nil))
	for _, m := range []core.Member{b, c} {
		s.hear(m, reports(6))
		s.hear(m, core.Farewell())
	}
	s.hear(a, reports(6))
	said = beat(s)
	require.Len(t, said, 2)
	for _, e := range said {
		require.Equal(t, a, e.Home)
	}
}

// A shut gate acts like a Leave that can be undone.
func TestRegion_GivesUpWhileTheGateIsShut(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(c, assigned(1, a))
	s.step(core.Held{Shard: 0, Attempt: 1, Token: 7})
	require.Contains(t, s.step(core.Gate{}),
		core.Tell{To: b, Message: core.Pause{Shard: 0, Token: 7}})
	report := s.hear(c, core.Table{Epoch: 5, N: 1})
	require.True(t, report[len(report)-1].(core.Tell).Message.(core.Report).Leaving)
}

// A coordinator may be stepped before it has seen a view.
func TestAllocation_WithoutMembersDoesNothing(t *testing.T) {
	cfg := config(4)
	cfg.Moves = 1
	s := &story{core: core.NewAllocation(cfg, 5, nil), now: time.Unix(1000, 0)}
	for range 5 {
		s.now = s.now.Add(time.Second)
		require.Empty(t, homes(s.step(core.Wake{})))
	}
}
