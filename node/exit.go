package node

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Statuses with which Main ends the process. A second signal ends it with 128 and the number of the signal.
const (
	ExitOK      = 0 // stopped in order
	ExitFailed  = 1 // register, the store or work given to Node.Go returned an error
	ExitInvalid = 2 // the configuration is invalid, nothing was done
	ExitStart   = 3 // the member could not be started: port taken, provider not reached, too few members
	ExitStop    = 4 // stopped, but not in order: leases may be left to expire
	ExitSplit   = 5 // split off from the cluster, and OnSplit is Exit: start the process again
)

// ExitCode returns the status for an error of Run. Of several, the first in the order of the constants counts,
// beginning with ExitSplit.
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

// Main is Run as a whole main function: it prints the error to standard error and ends the process with ExitCode.
func Main(cfg RunConfig, register func(*Node) error) {
	err := Run(context.Background(), cfg, register)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(ExitCode(err))
}
