package node

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Exit statuses of a process that Main ends. A second signal ends it with status 128 plus the
// number of the signal.
const (
	ExitOK      = 0 // stopped in order
	ExitFailed  = 1 // register, the store or work given to Node.Go returned an error
	ExitInvalid = 2 // the configuration is invalid; nothing was done
	ExitStart   = 3 // not started: port in use, provider unreachable or too few members
	ExitStop    = 4 // stopped, but not in order: unreleased leases may have to expire
	ExitSplit   = 5 // split off from the cluster, and OnSplit is Exit: restart the process
)

// ExitCode returns the status for an error of Run. If the error matches several, ExitSplit comes
// first, then ExitInvalid, ExitStart and ExitStop.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrSplit):
		return ExitSplit
	case errors.Is(err, ErrInvalid):
		return ExitInvalid
	case errors.Is(err, ErrStart), errors.Is(err, ErrNotReady):
		return ExitStart
	case errors.Is(err, ErrStop):
		return ExitStop
	}
	return ExitFailed
}

// Main calls Run as a complete main function: it prints the error to standard error and exits the
// process with ExitCode.
func Main(cfg RunConfig, register func(*Node) error) {
	err := Run(context.Background(), cfg, register)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(ExitCode(err))
}
