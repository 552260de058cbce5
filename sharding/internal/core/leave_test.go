package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

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

// S9c: the member of the coordinator crashes while another one leaves. Its shards are drained and
// released before its time to stop is over; nobody else could take them yet.
func TestRegion_LeavesWithoutACoordinator(t *testing.T) {
	pause := core.Tell{To: b, Message: core.Pause{Shard: 0, Token: 7}}
	for _, leaves := range []bool{true, false} {
		s := running(t)
		if leaves {
			s.step(core.Leave{})
		}
		s.hear(c, core.Table{Epoch: 5, N: 1})
		s.now = s.now.Add(config(1).Orphan / 2)
		require.NotContains(t, s.step(core.Wake{}), pause)
		s.now = s.now.Add(config(1).Orphan / 2)
		effects := s.step(core.Wake{})
		if !leaves {
			require.Contains(t, effects, core.Look{})
			require.NotContains(t, effects, pause)
			continue
		}
		require.Contains(t, effects, pause)
		require.NotContains(t, effects, core.Look{})
		s.hear(b, core.Flush{Shard: 0, Token: 7})
		require.Contains(t, s.hear(c, core.Flush{Shard: 0, Token: 7}),
			core.Stop{Shard: 0, Token: 7})
		require.Contains(t, s.step(core.Ended{Shard: 0, Token: 7}),
			core.Release{Shard: 0, Token: 7})
		s.step(core.Released{Shard: 0, Token: 7, Certain: true})
		s.hear(b, core.Table{Epoch: 6})
		phase, _ := s.core.(*core.Region).Phase(0)
		require.Equal(t, core.Away, phase, "although it is still the home")
	}
}
