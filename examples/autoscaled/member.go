package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

// memberEnv holds the configuration of a member process.
const memberEnv = "CONCORD_AUTOSCALED_MEMBER"

type memberConfig struct {
	Leases string   // directory of the lease store
	Port   int      // of the provider
	Hosts  []string // of the provider: all hosts on which a member may run
}

// report is what a member prints after each write.
type report struct {
	Acknowledged uint64 // writes of this member
	Sum          uint64 // writes of all members, from a majority read
	Counted      int
}

// writes counts the writes of all members.
var writes = distributeddata.NewKey("writes", crdt.GCounter{})

// runMember is the main function of a member. The member leaves gracefully when its standard input
// ends.
func runMember() {
	var cfg memberConfig
	if err := json.Unmarshal([]byte(os.Getenv(memberEnv)), &cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	err := node.Run(ctx, node.RunConfig{
		Cluster: "autoscaled",
		Provider: automanaged.New(automanaged.Config{Port: cfg.Port, Hosts: cfg.Hosts,
			Refresh: 200 * time.Millisecond}),
		Store: func() (coordination.Store, error) { return file.Open(cfg.Leases) },
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelError})),
	}, register)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(node.ExitCode(err))
}

// register creates the replicator of a member without a name, in a cluster without a fixed size.
func register(n *node.Node) error {
	members, err := n.Document("autoscaled.members")
	if err != nil {
		return err
	}
	dd, err := distributeddata.New(n.System, distributeddata.Config{
		Membership:  members,
		ForgetAfter: 3 * time.Second, // short for this example; see the field's comment
	})
	if err != nil {
		return err
	}
	n.Go(func(ctx context.Context) error { return work(ctx, dd) })
	return nil
}

// work writes at a majority until the member leaves, and prints a report after each write.
func work(ctx context.Context, dd *distributeddata.Replicator) error {
	if err := dd.Ready(ctx); err != nil {
		return err
	}
	var r report
	for out := json.NewEncoder(os.Stdout); ctx.Err() == nil; {
		_, err := writes.Update(ctx, dd, func(w *crdt.Writer, c *crdt.GCounter) error {
			c.Add(w, 1)
			return nil
		}, distributeddata.Majority)
		if err == nil {
			r.Acknowledged++
		}
		if c, err := writes.Get(ctx, dd, distributeddata.Majority); err == nil {
			r.Sum = c.Value()
		}
		r.Counted = dd.Status().Counted
		if err := out.Encode(r); err != nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return nil
}
