package bugs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A healing split causes some hundred rejections: one line, and the next one says how many.
func TestDoubling_LogsOneLineForMany(t *testing.T) {
	var d Doubling
	now := time.Now()
	due := func(after time.Duration) bool {
		_, due := d.Due(now.Add(after))
		return due
	}
	for n := range 256 {
		require.Equal(t, n == 0, due(time.Duration(n)*10*time.Millisecond), n+1)
	}
	require.True(t, due(doublingPause), "the 257th")
	for range 256 {
		require.False(t, due(3*doublingPause), "less than twice as many")
	}
	n, line := d.Due(now.Add(3 * doublingPause))
	require.True(t, line)
	require.EqualValues(t, 514, n)
}
