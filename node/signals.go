package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// errSignal is the cause of the context that a signal ended.
var errSignal = errors.New("node: stopped by a signal")

// exit ends the process; tests of signals run in processes of their own.
func exit(s os.Signal) {
	code := 1
	if n, ok := s.(syscall.Signal); ok {
		code = 128 + int(n)
	}
	os.Exit(code)
}

// signals returns a context that ends with the first SIGTERM or SIGINT. The second ends the process.
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
