package node

import (
	"fmt"
	"os"
	"syscall"
)

const canReexec = true

// reexec replaces the process by a fresh start of the same program, and returns only if that fails.
func reexec() error {
	if err := syscall.Exec("/proc/self/exe", os.Args, os.Environ()); err != nil {
		return fmt.Errorf("node: re-exec: %w", err)
	}
	return nil
}
