package causal

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Law 19: stamps increase whatever the wall clock does, and stay near the largest accurate time.
func TestClock_RisesAndStaysNear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Clock
		var last, largest uint64
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			ms := rapid.Uint64Range(0, 1000).Draw(t, "ms")
			largest = max(largest, ms)
			next := c.Next(ms)
			require.Greater(t, next, last)
			require.GreaterOrEqual(t, next, ms<<StampBits)
			require.LessOrEqual(t, next>>StampBits, largest+1)
			last = next
		}
	})
}

func TestClock_EndOfTime(t *testing.T) {
	var c Clock
	first := c.Next(1 << 60)
	require.EqualValues(t, uint64(maxMillis)<<StampBits, first)
	c.last.Store(1<<64 - 1)
	require.EqualValues(t, uint64(1<<64-1), c.Next(0))
}
