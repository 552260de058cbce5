//go:build linux || darwin

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/concord-go/concord/distributeddata/store"
)

// lock locks a file exclusively until it is closed.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return store.ErrLocked
	}
	return err
}
