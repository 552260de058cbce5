//go:build unix

package disktest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// taken returns how many bytes of the disk the files of a directory take, which is less than their sizes if they have holes.
func taken(t *testing.T, dir string) (total int64) {
	t.Helper()
	for _, name := range names(t, dir) {
		var s syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, name), &s); !os.IsNotExist(err) { // it may have gone meanwhile
			require.NoError(t, err)
			total += s.Blocks * 512
		}
	}
	return total
}
