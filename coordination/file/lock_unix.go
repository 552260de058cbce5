//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	lockable = true
	nonblock = unix.O_NONBLOCK // a named pipe in place of a file must not block us
)

// tryFlock takes the lock unless another open file holds it.
func tryFlock(f *os.File) (held bool, err error) {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}
