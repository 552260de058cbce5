package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// errSignal is the cause of a context that was canceled by a signal.
var errSignal = errors.New("node: stopped by a signal")

// exit ends the process. Tests of signals run in their own processes.
func exit(s os.Signal) {
	code := 1
	if n, ok := s.(syscall.Signal); ok {
		code = 128 + int(n)
	}
	os.Exit(code)
}

// signals returns a context that is canceled by the first SIGTERM or SIGINT. The second signal ends
// the process.
func signals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGTERM, os.Interrupt)
	done := make(chan struct{})
	go func() {
		select {
		case s := <-got:
			cancel(fmt.Errorf("%w: %v", errSignal, s))
		case <-done:
			return
		}
		select {
		case s := <-got:
			exit(s)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		cancel(nil)
	}
}
