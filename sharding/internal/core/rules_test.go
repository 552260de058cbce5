package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// Short stories of rules that seeded histories meet too seldom. Member a is the one under test.

var (
	a = core.Member{ID: "a", Incarnation: 1}
	b = core.Member{ID: "b", Incarnation: 1}
	c = core.Member{ID: "c", Incarnation: 1}
)

type stepper interface {
	Step(time.Time, core.Event) []core.Effect
}

// story steps a core one millisecond after the other.
type story struct {
	core stepper
	now  time.Time
}

func tell(s stepper) *story {
	st := &story{s, time.Unix(1000, 0)}
	st.step(core.View{Self: a, Members: []core.Member{a, b, c}})
	return st
}

func (s *story) step(ev core.Event) []core.Effect {
	s.now = s.now.Add(ms)
	return slices.Clone(s.core.Step(s.now, ev))
}

func (s *story) hear(from core.Member, m core.Message) []core.Effect {
	return s.step(core.Received{From: from, Message: m})
}

// assigned is the word of the coordinator at c that shard 0 is at home, in its epoch 5.
func assigned(n uint64, home core.Member, before ...core.Member) core.Table {
	return core.Table{Epoch: 5, N: n, Entries: []core.Entry{{Shard: 0, Assignment: core.Assignment{
		Version: core.Version{Epoch: 5, N: n}, Home: home, Before: before}}}}
}

// S5: the shard is another's by the time the attempt is granted.
func TestShard_GivesBackAGrantThatIsNotWantedAnyMore(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	require.Contains(t, s.hear(c, assigned(1, a)), core.Acquire{Shard: 0, Attempt: 1})
	free := core.Tell{To: b, Message: core.Free{Shard: 0, Version: core.Version{Epoch: 5, N: 2}}}
	require.NotContains(t, s.hear(c, assigned(2, b, a)), free, "an attempt is under way")
	require.Contains(t, s.step(core.Held{Shard: 0, Attempt: 1, Token: 7}), core.Release{Shard: 0, Token: 7})
	free.Message = core.Free{Shard: 0, Version: core.Version{Epoch: 5, N: 2}, Blank: core.Blank{Version: "v", Token: 7}}
	require.Contains(t, s.step(core.Released{Shard: 0, Token: 7, Certain: true, Blank: core.Blank{Version: "v", Token: 7}}), free)
}

// S10: an announcement that was on its way for long does not reopen a tenure.
func TestRoute_ATenureThatWasPausedStaysSo(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(b, core.Active{Shard: 0, Token: 7})
	body := core.Body{ID: "x", Size: 1}
	require.Contains(t, s.step(core.Send{Shard: 0, Body: body}),
		core.Tell{To: b, Message: core.Data{Shard: 0, Token: 7, Number: 1, Body: body}})
	require.Contains(t, s.hear(b, core.Pause{Shard: 0, Token: 7}), core.Tell{To: b, Message: core.Flush{Shard: 0, Token: 7, Number: 1}})
	s.hear(b, core.Active{Shard: 0, Token: 7})
	require.Empty(t, s.step(core.Send{Shard: 0, Body: body}), "it waits")
	require.Contains(t, s.hear(c, core.Active{Shard: 0, Token: 8}),
		core.Tell{To: c, Message: core.Data{Shard: 0, Token: 8, Number: 1, Body: body}})
}

// reports makes a member say that it has heard the coordinator, and has these shards.
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

// S7: a member that has not been heard yet may have a shard of which nobody else knows.
func TestAllocation_ListensBeforeItDecides(t *testing.T) {
	s := tell(core.NewAllocation(config(2), 5))
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

// S7b: b is in view and has shard 0; what it said to a new coordinator was lost.
func TestAllocation_AHomeThatWasNotHeardYetKeepsItsShards(t *testing.T) {
	s := tell(core.NewAllocation(config(1), 6))
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

// S6c: what an earlier coordinator has decided is heard from c when a has agreed already.
func TestAllocation_TellsWhatCameLateToThoseThatAgreed(t *testing.T) {
	s := tell(core.NewAllocation(config(2), 6))
	s.hear(a, reports(6))
	s.hear(b, reports(6))
	s.hear(c, reports(6))
	s.now = s.now.Add(300 * ms)
	require.Len(t, homes(s.step(core.Wake{})), 2)
	agreed := core.Report{Epoch: 6, N: 2, Sum: sumSaid(t, s)}
	s.hear(a, agreed)
	late := assigned(9, b).Entries
	late[0].Version.Epoch = 7 // of two coordinators neither knows the other for a moment
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

// sumSaid is the sum of the table that the coordinator says.
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

// S19: a shard is on its way from a to b when it is given to c: a may still have it, and b too.
func TestAllocation_NamesAllThatMayHaveAShard(t *testing.T) {
	s := tell(core.NewAllocation(config(1), 5))
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

// Bad input: what is said of shards that do not exist, by strangers, or by members of no home changes nothing.
func TestRegion_IgnoresWhatItCannotUse(t *testing.T) {
	r := core.NewRegion(config(1))
	s := tell(r)
	stranger := core.Member{ID: "b", Incarnation: 2}
	for _, shard := range []int{-1, 1, 1 << 30} {
		for _, m := range []core.Message{core.Active{Shard: shard, Token: 1}, core.Data{Shard: shard, Token: 1, Number: 1},
			core.Pause{Shard: shard}, core.Where{Shard: shard}, core.Free{Shard: shard}, core.AskFree{Entry: core.Entry{Shard: shard}}} {
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

// S22: an entity that cannot be made backs off, and in the end gives back what waits for it.
func TestSlot_AnEntityThatDoesNotStart(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Idle: time.Minute, Stash: 2, BackOff: 100 * ms, MaxBackOff: 10 * time.Second, Failures: 8})
	now := time.Unix(1000, 0)
	step := func(ev core.SlotEvent) []core.SlotEffect { return slices.Clone(slot.Step(now, ev)) }
	body := core.Body{ID: "x"}
	require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: 1}, core.Push{ID: "x", Run: 1, Body: body}}, step(core.Take{Body: body}))
	for run := uint64(1); run < 8; run++ {
		require.Empty(t, step(core.Terminated{ID: "x", Run: run, Left: []core.Body{body}, Failed: true}))
		require.Empty(t, step(core.Terminated{ID: "x", Run: run, Left: []core.Body{body}, Failed: true}), "said twice")
		wait := min(10*time.Second, 100*ms<<(run-1))
		require.Equal(t, now.Add(wait), slot.NextWake())
		now = now.Add(wait)
		require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: run + 1}, core.Push{ID: "x", Run: run + 1, Body: body}}, step(core.Pass{}))
	}
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body}}, step(core.Terminated{ID: "x", Run: 8, Left: []core.Body{body}, Failed: true}))
	require.Zero(t, slot.Len())

	step(core.Take{Body: body})
	require.Equal(t, []core.SlotEffect{core.End{ID: "x", Run: 9}}, step(core.Passivate{ID: "x", Run: 9}))
	require.Empty(t, step(core.Passivate{ID: "x", Run: 9}), "asked twice")
	require.Empty(t, step(core.Take{Body: body}))
	require.Empty(t, step(core.Take{Body: body}))
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body}}, step(core.Take{Body: body}), "the third waits in vain")
	require.Equal(t, []core.SlotEffect{core.Slay{ID: "x", Run: 9}}, step(core.KillAll{}))
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body}, core.Reject{Body: body}, core.Empty{}}, step(core.Terminated{ID: "x", Run: 9}))
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body}}, step(core.Take{Body: body}), "killed")
}

// S22: what an incarnation has left goes before what came meanwhile, and a hand-off drains both.
func TestSlot_WhatIsLeftComesFirst(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Stash: 10, BackOff: 100 * ms, MaxBackOff: time.Second, Failures: 8})
	now := time.Unix(1000, 0)
	step := func(ev core.SlotEvent) []core.SlotEffect { return slices.Clone(slot.Step(now, ev)) }
	body := func(n int) core.Body { return core.Body{ID: "x", Value: n} }
	step(core.Take{Body: body(1)})
	step(core.Take{Body: body(2)})
	step(core.Passivate{ID: "x", Run: 1})
	step(core.Take{Body: body(3)})
	push := func(run uint64, n int) core.SlotEffect { return core.Push{ID: "x", Run: run, Body: body(n)} }
	require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: 2}, push(2, 2), push(2, 3)},
		step(core.Terminated{ID: "x", Run: 1, Left: []core.Body{body(2)}, Worked: true}))
	require.Empty(t, step(core.Terminated{ID: "x", Run: 2, Left: []core.Body{body(3)}, Failed: true, Worked: true}))
	require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: 3}, push(3, 3), core.End{ID: "x", Run: 3}}, step(core.StopAll{}))
	require.Equal(t, []core.SlotEffect{core.Empty{}}, step(core.Terminated{ID: "x", Run: 3, Worked: true}))
}
