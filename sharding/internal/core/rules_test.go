package core_test

import (
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

// S8b: a said that it leaves; later reports that it stays have arrived before.
func TestAllocation_AnOvertakenReportDoesNotCount(t *testing.T) {
	s := served(t)
	first, _ := s.beat(t)
	second, _ := s.beat(t)
	has := []core.Tenure{{Shard: 0, Token: 9}}
	s.hear(a, core.Report{Epoch: 5, Beat: second.Beat, Active: has})
	for _, late := range []core.Report{
		{Epoch: 5, Beat: first.Beat, Active: has, Leaving: true},
		{Epoch: 5, Beat: second.Beat, Active: has, Leaving: true}, // of two, the first counts
		{Epoch: 4, Beat: second.Beat + 1, Leaving: true},          // to another coordinator
		{Epoch: 5, Beat: second.Beat + 10, Leaving: true},         // there was no such table
	} {
		s.hear(a, late)
		third, said := s.beat(t)
		require.Empty(t, said, "%+v", late)
		s.hear(a, core.Report{Epoch: 5, Beat: third.Beat, Active: has})
		s.hear(b, core.Report{Epoch: 5, Beat: third.Beat})
	}
	newest, _ := s.beat(t)
	s.hear(a, core.Report{Epoch: 5, Beat: newest.Beat, Active: has, Leaving: true})
	_, said := s.beat(t)
	require.Len(t, said, 1, "the newest counts")
}

// S8d: the store is away for all, and they notice the beginning and the end at different times.
func TestAllocation_AnOutageForAllMovesNoShard(t *testing.T) {
	s := served(t)
	report := func(m core.Member, failing bool) (said []core.Assigned) {
		s.hear(m, core.Report{Epoch: 5, Failing: failing})
		_, said = s.beat(t)
		return said
	}
	for range 3 {
		for _, failing := range []bool{true, false} {
			for _, m := range []core.Member{c, a, b} {
				require.Empty(t, report(m, failing))
			}
		}
	}
	require.Empty(t, report(a, true))
	var said []core.Assigned
	for begun := s.now; len(said) == 0; {
		require.Less(t, s.now.Sub(begun), 2*config(1).Fit)
		said = slices.Concat(report(b, false), report(c, false), report(a, true))
	}
	require.Equal(t, b, said[0].Home, "the store is away for a alone")
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
	for _, leaving := range []bool{false, true} {
		s.hear(b, core.Report{Epoch: 5})
		s.hear(a, core.Report{Epoch: 5, Leaving: leaving})
		_, said := s.beat(t)
		require.Equal(t, leaving, len(said) == 1)
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
