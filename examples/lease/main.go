// Command lease runs a task on one node at a time. Start it in two terminals of one machine and
// stop the working one with Ctrl-C, or kill it: the other continues at once, or when the lease has
// expired.
//
//	go run ./examples/lease A
//
//	A waits for its turn
//	A has lease "report", token 1
//	A works
//	A works
//	A ends: interrupt signal received
//
//	go run ./examples/lease B
//
//	B waits for its turn
//	B has lease "report", token 2
//	B works
//
// The processes share a directory. On several machines, use a store with a server: docs/stores.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: lease NAME")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir := filepath.Join(os.TempDir(), "concord-example-lease")
	if err := run(ctx, os.Stdout, dir, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run works whenever this node holds the lease, until ctx ends.
func run(ctx context.Context, out io.Writer, dir, name string) (err error) {
	store, err := file.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	session, err := coordination.Open(store, coordination.Config{
		Owner: name, TTL: 10 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close(context.Background())) }()

	for ctx.Err() == nil {
		fmt.Fprintln(out, name, "waits for its turn")
		err := session.Lease("report").Do(ctx,
			func(ctx context.Context, g *coordination.Grant) error {
				fmt.Fprintln(out, name, "has", g)
				return work(ctx, g, func() { fmt.Fprintln(out, name, "works") })
			})
		fmt.Fprintf(out, "%s ends: %v\n", name, err)
	}
	return nil
}

// work does one step after the other. Its context ends with the lease or with the program.
func work(ctx context.Context, tenure coordination.Tenure, piece func()) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		if err := tenure.Check(); err != nil { // a pause may outlast the lease
			return err
		}
		piece()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-every.C:
		}
	}
}
