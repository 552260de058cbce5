// Command first is one of the three members of docs/first-cluster.md. Each member counts one visit
// a second, on a majority of the members if it can. Start it in three terminals:
//
//	go run ./examples/first 1
//	go run ./examples/first 2
//	go run ./examples/first 3
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

func main() {
	number := 0
	if len(os.Args) == 2 {
		number, _ = strconv.Atoi(os.Args[1])
	}
	if number < 1 || number > 3 {
		fmt.Fprintln(os.Stderr, "usage: first 1|2|3")
		os.Exit(2)
	}
	node.Main(member(4020+number, 5020+number, "127.0.0.1:5021", "127.0.0.1:5022",
		"127.0.0.1:5023"),
		register)
}

func member(port, health int, hosts ...string) node.RunConfig {
	return node.RunConfig{
		Cluster:    "first",
		MinMembers: 3,                       // all of them begin it
		Remote:     node.Config{Port: port}, // messages between members
		Provider: automanaged.New(automanaged.Config{
			Port:  health, // health requests between members
			Hosts: hosts,  // the health addresses of all members
		}),
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelWarn})),
	}
}

var visits = distributeddata.NewKey("visits", crdt.GCounter{})

func register(n *node.Node) error {
	dd, err := distributeddata.New(n.System, distributeddata.Config{})
	if err != nil {
		return err
	}
	n.Go(func(ctx context.Context) error { return count(ctx, n.Incarnation, dd) })
	return nil
}

// count counts a visit a second until the incarnation of the member ends.
func count(ctx context.Context, incarnation int, dd *distributeddata.Replicator) error {
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, 2*time.Second)
		total, err := visits.Update(within, dd, add, distributeddata.Majority)
		cancel()
		switch {
		case err == nil:
			fmt.Printf("incarnation %d: %v visits, the last one on a majority\n",
				incarnation, total)
		case errors.Is(err, distributeddata.ErrQuorum):
			fmt.Printf("incarnation %d: %v visits, the last one here: %v\n",
				incarnation, total, err)
		case ctx.Err() == nil:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

func add(w *crdt.Writer, c *crdt.GCounter) error {
	c.Add(w, 1)
	return nil
}
