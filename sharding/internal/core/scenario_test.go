package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// Scenarios are bugs that other systems had or have. Member a is the one under test, c the
// coordinator.

// running returns a region in which shard 0 is active with token 7.
func running(t *testing.T) *story {
	s := tell(core.NewRegion(config(1)))
	require.Contains(t, s.hear(c, assigned(1, a)), core.Acquire{Shard: 0, Attempt: 1})
	require.Contains(t, s.step(core.Held{Shard: 0, Attempt: 1, Token: 7}),
		core.Start{Shard: 0, Token: 7})
	return s
}

// freeOf is the answer that shard 0 is free, by the nth assignment, to a member.
func freeOf(n uint64, to core.Member, blank core.Blank) core.Tell {
	return core.Tell{To: to, Message: core.Free{Shard: 0, Version: core.Version{Epoch: 5, N: n},
		Blank: blank}}
}

// Elsewhere, a shard that waited for its lease stashed the hand-off too. It was answered when the
// lease had been acquired, after minutes, or never.
// Seen in akka 27259, 29034, 30120, akka.net 8146 to 8148.
func TestScenario_ShardWaitingForItsLeaseMovesAtOnce(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(c, assigned(1, a))
	s.step(core.NotHeld{Shard: 0, Attempt: 1, Taken: true})
	require.Contains(t, s.hear(c, assigned(2, b, a)), freeOf(2, b, core.Blank{}))
	s.now = s.now.Add(config(1).Retry)
	for _, e := range s.step(core.Wake{}) {
		require.IsNotType(t, core.Acquire{}, e, "it is not wanted any more")
	}
}

// Elsewhere, a hand-off that was lost, or answered after a timeout, was never asked for again.
// Seen in akka.net 7500, 8055, 8146.
func TestScenario_ALostFreeIsAskedForAgain(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	ask := core.Tell{To: b, Message: core.AskFree{Entry: assigned(1, a, b).Entries[0]}}
	require.Contains(t, s.hear(c, assigned(1, a, b)), ask)
	for range 3 {
		s.now = s.now.Add(config(1).Repeat)
		require.Contains(t, s.step(core.Wake{}), ask)
	}
	require.Contains(t, s.step(core.Received{From: b, Message: freeOf(1, a, core.Blank{}).Message}),
		core.Acquire{Shard: 0, Attempt: 1})

	s = tell(core.NewRegion(config(1)))
	s.hear(c, assigned(1, b, a))
	for range 3 {
		require.Contains(t, s.hear(b, core.AskFree{Entry: assigned(1, b, a).Entries[0]}),
			freeOf(1, b, core.Blank{}), "each time")
	}
}

// Elsewhere, a report that came late or twice, that a shard had stopped, took it from its next
// home.
func TestScenario_ALateFreeTakesNothing(t *testing.T) {
	late := freeOf(1, a, core.Blank{}).Message
	s := running(t)
	s.hear(c, assigned(3, a))
	require.Empty(t, s.hear(b, late))
	require.Empty(t, s.hear(b, late))
	require.NotEmpty(t, s.hear(b, core.Where{Shard: 0}), "it is still here")

	s = tell(core.NewRegion(config(1)))
	s.hear(c, assigned(3, a, b))
	require.Empty(t, s.hear(b, late), "b may have had it since")
	require.Contains(t, s.hear(b, freeOf(3, a, core.Blank{}).Message),
		core.Acquire{Shard: 0, Attempt: 1})
}

// Elsewhere, the lease stayed with a region that stopped, was removed, or lost a shard.
// Seen in akka 26468, 31737, pekko 2738, akka.net 4369, 7379, 7383.
func TestScenario_EveryEndReleasesTheLease(t *testing.T) {
	for name, end := range map[string]core.Event{
		"the lease is lost":     core.Lost{Shard: 0, Token: 7},
		"the member is removed": core.View{Self: a, Members: []core.Member{b, c}, Removed: true},
		"the gate is shut":      core.Gate{},
		"it is assigned away":   core.Received{From: c, Message: assigned(2, b, a)},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(t)
			effects := s.step(end)
			stops := func(e core.Effect) bool {
				return e == core.Stop{Shard: 0, Token: 7} || e == core.StopNow{Shard: 0, Token: 7}
			}
			for range 4 {
				if slices.ContainsFunc(effects, stops) {
					break
				}
				s.now = s.now.Add(config(1).FlushTimeout) // b and c do not answer
				effects = s.step(core.Wake{})
			}
			require.True(t, slices.ContainsFunc(effects, stops))
			require.NotContains(t, effects, core.Release{Shard: 0, Token: 7},
				"entities may still run")
			require.Contains(t, s.step(core.Ended{Shard: 0, Token: 7}),
				core.Release{Shard: 0, Token: 7})
		})
	}
}

// Elsewhere, a store that did not answer counted as one that had refused.
func TestScenario_AnAttemptWithoutAnAnswerIsRepeated(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(c, assigned(1, a))
	for attempt := range uint64(20) {
		require.Empty(t, s.step(core.NotHeld{Shard: 0, Attempt: attempt + 1}), "not at once")
		s.now = s.now.Add(config(1).Retry)
		require.Contains(t, s.step(core.Wake{}), core.Acquire{Shard: 0, Attempt: attempt + 2})
	}
}

// While the store does not answer, a region tries less and less often, up to every Retry: it has
// many shards.
func TestShard_TriesAFailingStoreLessAndLessOften(t *testing.T) {
	s := tell(core.NewRegion(config(1)))
	s.hear(c, assigned(1, a))
	attempt := uint64(1)
	for _, pause := range []time.Duration{200 * ms, 400 * ms, 800 * ms, 1000 * ms, 1000 * ms} {
		require.Empty(t, s.step(core.NotHeld{Shard: 0, Attempt: attempt}))
		s.now = s.now.Add(pause - 2*ms) // and each step adds one
		require.Empty(t, s.step(core.Wake{}))
		attempt++
		require.Contains(t, s.step(core.Wake{}), core.Acquire{Shard: 0, Attempt: attempt})
	}
	s.step(core.NotHeld{Shard: 0, Attempt: attempt, Taken: true})
	s.now = s.now.Add(1000 * ms)
	require.Contains(t, s.step(core.Wake{}), core.Acquire{Shard: 0, Attempt: attempt + 1})
	s.step(core.NotHeld{Shard: 0, Attempt: attempt + 1})
	s.now = s.now.Add(200 * ms)
	require.Contains(t, s.step(core.Wake{}), core.Acquire{Shard: 0, Attempt: attempt + 2},
		"the store has answered in between")
}
