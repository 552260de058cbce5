package disktest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostAllocated bounds the memory allocated while a small damaged store is opened, read and written
// again; some 54 to 112 MiB with Badger.
const mostAllocated = 256 << 20

// FuzzDirectory damages one file of a closed store at a place that the input chooses. Opening
// returns the rows, reports what is missing, or is an error; it neither panics nor hangs, nor
// allocates what a damaged length says.
func FuzzDirectory(f *testing.F) {
	for i := range 6 {
		f.Add(uint8(i), uint8(i), uint32(1000*i), uint8(1<<i), i == 5)
	}
	base, err := os.MkdirTemp("", "directory")
	require.NoError(f, err)
	f.Cleanup(func() { _ = os.RemoveAll(base) })
	var prepare sync.Once
	want := map[string]map[string]string{}
	f.Fuzz(func(t *testing.T, which, file uint8, at uint32, flip uint8, cut bool) {
		prepare.Do(func() {
			for _, k := range kinds() {
				s := mustOpen(t, k, filepath.Join(base, k.name))
				want[k.name] = fill(t, s)
				require.NoError(t, s.Close())
			}
		})
		k := kinds()[int(which)%len(kinds())]
		dir := copyDir(t, filepath.Join(base, k.name))
		all := names(t, dir)
		path := filepath.Join(dir, all[int(file)%len(all)])
		raw, err := os.ReadFile(filepath.Clean(path))
		require.NoError(t, err)
		if len(raw) == 0 {
			return
		}
		place := int(at) % len(raw)
		if raw[place] ^= flip; cut {
			raw = raw[:place]
		}
		require.NoError(t, os.WriteFile(path, raw, 0o600))
		what := fmt.Sprintf("%s, byte %d, flip %d, cut %v", filepath.Base(path), place, flip, cut)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		survive(t, k, dir, want[k.name], what)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(mostAllocated), what)
	})
}
