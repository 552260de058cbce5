package node

import (
	"fmt"
	"os"
	"syscall"
)

const canReexec = true

// reexec replaces the process with a fresh start of the same program. It returns only on failure.
func reexec() error {
	if err := syscall.Exec("/proc/self/exe", os.Args, os.Environ()); err != nil {
		return fmt.Errorf("node: re-exec: %w", err)
	}
	return nil
}
