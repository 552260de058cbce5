package causal

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Law 19: stamps increase whatever the wall clock does, and stay near the largest accurate time.
func TestClock_RisesAndStaysNear(t *testing.T) {
	const drift = 50
	rapid.Check(t, func(t *rapid.T) {
		var c Clock
		var last, largest uint64
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			ms := rapid.Uint64Range(0, 1000).Draw(t, "ms")
			largest = max(largest, ms)
			if rapid.Bool().Draw(t, "observe") {
				stamp := rapid.Uint64Range(0, 2000<<StampBits).Draw(t, "stamp")
				ok := c.Observe(stamp, ms, drift)
				require.Equal(t, stamp>>StampBits <= ms+drift, ok)
				if ok {
					last = max(last, stamp)
				}
				continue
			}
			next := c.Next(ms)
			require.Greater(t, next, last)
			require.GreaterOrEqual(t, next, ms<<StampBits)
			require.LessOrEqual(t, next>>StampBits, largest+drift+1)
			last = next
		}
	})
}

func TestClock_EndOfTime(t *testing.T) {
	var c Clock
	first := c.Next(1 << 60)
	require.EqualValues(t, uint64(maxMillis)<<StampBits, first)
	require.True(t, c.Observe(1<<64-1, 1<<60, 0))
	require.EqualValues(t, uint64(1<<64-1), c.Next(0))
}
