//go:build unix

package disktest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// taken returns the number of bytes on disk that the files of a directory take, which is less than
// their sizes if they have holes.
func taken(t *testing.T, dir string) (total int64) {
	t.Helper()
	for _, name := range names(t, dir) {
		var s syscall.Stat_t
		// It may have been deleted meanwhile.
		if err := syscall.Stat(filepath.Join(dir, name), &s); !os.IsNotExist(err) {
			require.NoError(t, err)
			total += s.Blocks * 512
		}
	}
	return total
}
