// Command configured starts a cluster member from a file, concord.yaml, which configures its
// address, cluster provider, lease store, a replicator with a disk, and a singleton. The program
// determines which types of stores are available, and what they are used for.
//
//	mkdir /tmp/shop
//	DATA=/tmp/shop go run ./examples/configured examples/configured/concord.yaml
//
//	member of shop, leases for 10s
//	greeter: hello under token 1
//	visits: 1
//
// The second run counts two visits, since the replicator stores them on disk, and has token 2.
// Errors in the file are reported before anything starts:
//
//	DATA=/tmp/shop PORT=70000 go run ./examples/configured examples/configured/concord.yaml
//
//	config: invalid: examples/configured/concord.yaml: line 4: node.port: port (70000) must be from 0 to 65535
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/config"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/singleton"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: configured FILE")
		os.Exit(2)
	}
	err := run(context.Background(), os.Stdout, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(node.ExitCode(err))
}

// kinds lists the providers and stores linked into this program.
var kinds = config.Kinds{
	Providers: map[string]config.Provider{"automanaged": automanaged.Configured},
	Leases:    map[string]leaseconfig.Opener{"file": file.Opener},
	Disks:     map[string]config.Disk{"bbolt": bbolt.Opener},
}

// run makes one visit: the member starts, greets, counts and stops.
func run(ctx context.Context, out io.Writer, name string) (err error) {
	f, err := config.Load(name, kinds)
	if err != nil {
		return err
	}
	visits, err := f.Replicator("visits")
	if err != nil {
		return err
	}
	if visits.Config.Store, err = visits.OpenStore(); err != nil {
		return err
	}
	// The store is closed after node.Run has returned.
	defer func() { err = errors.Join(err, visits.Config.Store.Close()) }()
	greeter, err := f.Singleton("greeter")
	if err != nil {
		return err
	}
	f.Node.Logger = slog.New(slog.NewTextHandler(os.Stderr,
		&slog.HandlerOptions{Level: slog.LevelWarn}))
	fmt.Fprintf(out, "member of %s, leases for %v\n", f.Node.Cluster, f.Node.Session.TTL)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return node.Run(ctx, f.Node, func(n *node.Node) error {
		dd, err := distributeddata.New(n.System, visits.Config)
		if err != nil {
			return err
		}
		greeted := make(chan struct{})
		s, err := singleton.New(n.System, n.Session, greeter,
			func(tenure coordination.Tenure) actor.Actor {
				return greet(out, tenure, greeted)
			})
		if err != nil {
			return err
		}
		n.Go(func(ctx context.Context) error {
			defer stop()
			n.System.Root.Send(s.PID(), "hello")
			select {
			case <-greeted:
			case <-ctx.Done():
				return ctx.Err()
			}
			return count(ctx, out, dd)
		})
		return nil
	})
}

// greet is the singleton.
func greet(out io.Writer, tenure coordination.Tenure, greeted chan<- struct{}) actor.Actor {
	return actor.ReceiveFunc(func(ctx actor.Context) {
		if text, ok := ctx.Message().(string); ok {
			fmt.Fprintf(out, "greeter: %s under token %d\n", text, tenure.Token())
			close(greeted)
		}
	})
}

var key = distributeddata.NewKey("visits", crdt.GCounter{})

// count counts a visit, on the disks of a majority, which is this member alone.
func count(ctx context.Context, out io.Writer, dd *distributeddata.Replicator) error {
	v, err := key.Update(ctx, dd, func(w *crdt.Writer, c *crdt.GCounter) error {
		c.Add(w, 1)
		return nil
	}, distributeddata.Majority)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "visits: %d\n", v.Value())
	return nil
}
