// Command durable stops all members of a cluster and starts them again. Their counts survive, since
// each member keeps durable keys in its own directory. The counter of views is volatile and
// restarts at zero.
//
//	go run ./examples/durable
//
//	orders 3, views 3
//	all members have stopped, and start again
//	orders 6, views 3
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/examples/three"
)

// Orders is durable: see config. Views is not.
var (
	Orders = distributeddata.NewKey("shop/orders", crdt.PNCounter{})
	Views  = distributeddata.NewKey("views", crdt.PNCounter{})
)

// config is the configuration common to all members, except for name and store.
func config(i int, s store.Store) distributeddata.Config {
	return distributeddata.Config{
		Durable: []string{"shop/*"},
		Store:   s,
		Member:  fmt.Sprintf("shop-%d", i), // the name under which it comes back
	}
}

func main() {
	dir, err := os.MkdirTemp("", "durable")
	if err != nil {
		log.Fatal(err)
	}
	err = run(context.Background(), os.Stdout, dir)
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, dir string) error {
	if err := session(ctx, out, dir); err != nil {
		return err
	}
	fmt.Fprintln(out, "all members have stopped, and start again")
	return session(ctx, out, dir)
}

// session runs the members from start to stop.
func session(ctx context.Context, out io.Writer, dir string) (err error) {
	var stores [three.Members]store.Store
	for i := range stores {
		s, err := badger.Open(filepath.Join(dir, fmt.Sprint(i)),
			badger.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		// The replicator does not close its store.
		defer func() { err = errors.Join(err, s.Close()) }()
		stores[i] = s
	}
	return three.Run(ctx, out, func(i int) distributeddata.Config {
		return config(i, stores[i])
	}, count)
}

// count counts one order and one view at each member.
func count(ctx context.Context, out io.Writer, c *three.Cluster) error {
	var orders, views crdt.PNCounter
	for _, dd := range c.DD {
		add := func(w *crdt.Writer, v *crdt.PNCounter) error { v.Add(w, 1); return nil }
		var err error
		if orders, err = Orders.Update(ctx, dd, add, distributeddata.All); err != nil {
			return err
		}
		if views, err = Views.Update(ctx, dd, add, distributeddata.All); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "orders %d, views %d\n", orders.Value(), views.Value())
	return nil
}
