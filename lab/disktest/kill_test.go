package disktest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that is killed while it commits leaves all acknowledged batches, and at most the next
// one; the next process continues from there.
func TestKill_LeavesWhatWasAcknowledged(t *testing.T) {
	each(t, func(t *testing.T, k kind, random *rand.Rand) {
		dir, told := newDir(t), int64(0)
		for range *kills {
			w := startWriter(t, k, dir, random.IntN(300))
			w.Kill()
			require.Empty(t, w.Stderr())
			found := w.found.Load()
			require.True(t, found == told || found == told+1, "%d were told, %d are there",
				told, found)
			told = w.told.Load()
		}
		holds(t, k, dir, told)
		t.Logf("%d processes killed, %d batches", *kills, told)
	})
}
