package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// S41: after it has opened, each trial that fails opens the breaker at once, for twice the time.
func TestBreaker_TheWaitDoublesWhileNoCallSucceeds(t *testing.T) {
	b := core.NewBreaker(core.BreakerConfig{Trip: time.Second, Wait: time.Minute,
		MaxWait: 10 * time.Minute})
	now := time.Unix(1000, 0)
	opens := func() (opened time.Duration) {
		for ; b.Memory(now) == core.MemoryFails; now = now.Add(time.Second) {
			opened += time.Second
		}
		return opened
	}
	fail := func() { b.Called(now, 1, false) }
	for range 2 {
		fail()
		require.False(t, b.Suspects(now), "one call")
		now = now.Add(time.Second)
		fail()
		require.True(t, b.Suspects(now))
		require.Equal(t, core.MemoryUnproven, b.Memory(now))
		b.Trip()
		require.Equal(t, time.Minute, opens())
		for _, minutes := range []time.Duration{2, 4, 8, 10, 10} {
			fail()
			require.Equal(t, minutes*time.Minute, opens())
		}
		fail()
		b.Called(now, 2, true)
		require.Equal(t, core.MemoryWorks, b.Memory(now))
	}
}

// S41: calls for another shard decide. Calls that failed long ago do not count.
func TestBreaker_ACallForAnotherShardDecides(t *testing.T) {
	b := core.NewBreaker(core.BreakerConfig{Trip: time.Second, Wait: time.Minute,
		MaxWait: time.Minute})
	now := time.Unix(1000, 0)
	fail := func(shard int) {
		now = now.Add(time.Second)
		b.Called(now, shard, false)
	}
	fail(1)
	now = now.Add(time.Hour)
	fail(1)
	require.False(t, b.Suspects(now))
	fail(1)
	require.True(t, b.Suspects(now))
	b.Ask(now, 2)
	fail(1)
	require.False(t, b.Suspects(now))
	require.NotEqual(t, core.MemoryFails, b.Memory(now))
	fail(2)
	require.Equal(t, core.MemoryFails, b.Memory(now))
}
