// Command fencing shows what a lease cannot prevent, and how a fencing token does. A checks its
// lease and is stopped before it writes, as by SIGSTOP, a snapshot of its machine or a long garbage
// collection. Its lease expires, B takes over and writes, and then A continues.
//
//	go run ./examples/fencing
//
//	A holds lease "billing", token 1
//	A checks its lease: <nil>; and is stopped before it writes
//	B holds lease "billing", token 2
//	B writes: <nil>
//	A goes on and writes: fence: stale token 1 for "ledger", 2 has been seen
//	the ledger: [B]
//
// A's own clocks do not show the pause, so here A has a clock that stands still.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/memory"
)

// stopped is the clock of a process that does not run: its time stands still and no timer fires.
type stopped struct{}

func (stopped) Read() coordination.Reading { return coordination.Reading{} }
func (stopped) AfterFunc(time.Duration, func()) (stop func() bool) {
	return func() bool { return true }
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	store, quiet := memory.New(), slog.New(slog.DiscardHandler)
	a, err := coordination.Open(store,
		coordination.Config{Owner: "A", TTL: 5 * time.Second, Clock: stopped{}, Logger: quiet})
	if err != nil {
		return err
	}
	b, err := coordination.Open(store,
		coordination.Config{Owner: "B", TTL: 5 * time.Second, Logger: quiet})
	if err != nil {
		return err
	}
	var guard fence.Guard
	var ledger []string
	write := func(who string, token coordination.Token) error {
		return guard.Do(ctx, "ledger", token, func(context.Context) error {
			ledger = append(ledger, who)
			return nil
		})
	}

	old, err := a.Lease("billing").Acquire(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "A holds %v\nA checks its lease: %v; and is stopped before it writes\n", old,
		old.Check())
	// Do waits until A's lease expires.
	err = b.Lease("billing").Do(ctx, func(_ context.Context, g *coordination.Grant) error {
		fmt.Fprintf(out, "B holds %v\nB writes: %v\n", g, write("B", g.Token()))
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "A goes on and writes: %v\nthe ledger: %v\n", write("A", old.Token()), ledger)
	return errors.Join(old.Release(ctx), a.Close(ctx), b.Close(ctx))
}
