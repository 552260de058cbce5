package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ExitCode returns the exit status of a process for an error of Run. If the error matches several,
// 5 comes first, then 2, 3 and 4:
//
//	0  stopped in order: no error
//	1  register, the store or work given to Node.Go returned an error
//	2  the configuration is invalid (ErrInvalid); nothing was done
//	3  not started (ErrStart): port in use, provider unreachable or too few members
//	4  stopped, but not in order (ErrStop): unreleased leases may have to expire
//	5  split off from the cluster (ErrSplit), and OnSplit is Exit: restart the process
//
// A second signal ends the process with status 128 plus the number of the signal.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrSplit):
		return 5
	case errors.Is(err, ErrInvalid):
		return 2
	case errors.Is(err, ErrStart):
		return 3
	case errors.Is(err, ErrStop):
		return 4
	}
	return 1
}

// Main calls Run as a complete main function: it prints the error to standard error and exits the
// process with ExitCode.
func Main(cfg RunConfig, register func(*Node) error) {
	err := Run(context.Background(), cfg, register)
	if err != nil {
		printed := make(chan struct{})
		go func() {
			defer close(printed)
			fmt.Fprintln(os.Stderr, err)
		}()
		select {
		case <-printed:
		case <-time.After(time.Second): // nobody reads the pipe
		}
	}
	os.Exit(ExitCode(err))
}
