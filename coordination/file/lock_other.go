//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package file

import (
	"errors"
	"os"
)

const (
	lockable = false
	nonblock = 0
)

func tryFlock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
