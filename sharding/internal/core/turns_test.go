package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// moving returns a region at a that hosts all of n shards, with token 7, and the Table that moves
// them all to b.
func moving(t *testing.T, n int) (*story, core.Table) {
	t.Helper()
	s := tell(core.NewRegion(config(n)))
	here, moved := core.Table{Epoch: 5, N: 1}, core.Table{Epoch: 5, N: 2}
	for k := range n {
		here.Entries = append(here.Entries, core.Entry{Shard: k, Assignment: core.Assignment{
			Version: core.Version{Epoch: 5, N: 1}, Home: a}})
		moved.Entries = append(moved.Entries, core.Entry{Shard: k, Assignment: core.Assignment{
			Version: core.Version{Epoch: 5, N: 2}, Home: b, Before: []core.Member{a}}})
	}
	s.hear(c, here)
	for k := range n {
		s.step(core.Held{Shard: k, Attempt: 1, Token: 7})
	}
	return s, moved
}

// pauses returns the shards that the effects of each call announce as being given up, each once.
func pauses() func([]core.Effect) []int {
	seen := map[int]bool{}
	return func(effects []core.Effect) (shards []int) {
		for _, e := range effects {
			if told, ok := e.(core.Tell); ok && told.To == c {
				if p, ok := told.Message.(core.Pause); ok && !seen[p.Shard] {
					seen[p.Shard] = true
					shards = append(shards, p.Shard)
				}
			}
		}
		return shards
	}
}

// S11h: a tenth of the shards that move are given up at a time. A shard that is active elsewhere
// lets the next one go.
func TestTurns_FewShardsAreGivenUpAtATime(t *testing.T) {
	s, moved := moving(t, 100)
	paused := pauses()
	given := paused(s.hear(c, moved))
	require.Len(t, given, 10)
	for k := range 90 {
		next := paused(s.hear(b, core.Active{Shard: given[k], Token: 8}))
		require.Equal(t, []int{10 + k}, next)
		given = append(given, next...)
	}
}

// S11h: entities that do not stop, and a store that does not answer, hold up the rest by half a
// second in all.
func TestTurns_DoNotWaitForSlowShards(t *testing.T) {
	s, moved := moving(t, 100)
	paused := pauses()
	given := len(paused(s.hear(c, moved)))
	for begun := s.now; given < 100; {
		region := s.core.(*core.Region)
		require.False(t, region.NextWake().IsZero())
		s.now = region.NextWake()
		given += len(paused(s.step(core.Wake{})))
		require.Less(t, s.now.Sub(begun), 600*time.Millisecond)
	}
}

// S11h: a shard that is to stay after all is not given up. A region that must not host gives up all
// shards at once.
func TestTurns_EndWhenTheReasonDoes(t *testing.T) {
	s, moved := moving(t, 100)
	paused := pauses()
	require.Len(t, paused(s.hear(c, moved)), 10)
	back := core.Table{Epoch: 5, N: 3}
	for k := 10; k < 60; k++ {
		back.Entries = append(back.Entries, core.Entry{Shard: k, Assignment: core.Assignment{
			Version: core.Version{Epoch: 5, N: 3}, Home: a}})
	}
	require.Empty(t, paused(s.hear(c, back)))
	s.now = s.now.Add(time.Second)
	require.Equal(t, []int{60, 61, 62, 63, 64, 65, 66, 67, 68, 69}, paused(s.step(core.Wake{})))
	require.Len(t, paused(s.step(core.Gate{})), 80)
}
