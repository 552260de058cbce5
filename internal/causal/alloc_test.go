package causal

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A value with one atom, such as a register or a counter of one replica, consists of a leaf, its
// path, and a reference to the payload. A replicator holds one for each key, so each byte counts.
func TestMemoryOfOneAtom(t *testing.T) {
	l := Leaf{Dot{1, 1}, strings.Repeat("x", 100)}
	const n = 1000
	var s Store
	least := uint64(math.MaxUint64) // of five rounds: the runtime allocates too
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			s = Store{}.Put("\x61", l)
		}
		runtime.ReadMemStats(&after)
		least = min(least, (after.TotalAlloc-before.TotalAlloc)/n)
	}
	require.Equal(t, 1, s.Len())
	require.LessOrEqual(t, least, uint64(120), "80 for the leaf, 16 for the path, 24 for the atom")
}
