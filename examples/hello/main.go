// Command hello is the program of the README: three members, and a set that each of them holds.
// Start it in three terminals:
//
//	go run ./examples/hello -port 7001
//	go run ./examples/hello -port 7002
//	go run ./examples/hello -port 7003
//
// Each finally prints:
//
//	{guest 7001 guest 7002 guest 7003}
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

var (
	hosts  = []string{"127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003"}
	guests = distributeddata.NewKey("guests", crdt.ORSet[string]{})
)

func main() {
	port := flag.Int("port", 7001, "for messages; port+1000 is for health requests")
	flag.Parse()
	slog.SetLogLoggerLevel(slog.LevelWarn)
	node.Main(node.RunConfig{
		Cluster:    "party",
		MinMembers: 2, // two thirds of the members begin the cluster
		Remote:     node.Config{Port: *port},
		Provider:   automanaged.New(automanaged.Config{Port: *port + 1000, Hosts: hosts}),
	}, func(n *node.Node) error {
		dd, err := distributeddata.New(n.System, distributeddata.Config{})
		if err != nil {
			return err
		}
		n.Go(func(ctx context.Context) error {
			return arrive(ctx, dd, fmt.Sprint("guest ", *port))
		})
		return nil
	})
}

func arrive(ctx context.Context, dd *distributeddata.Replicator, guest string) error {
	_, err := guests.Update(ctx, dd, func(w *crdt.Writer, set *crdt.ORSet[string]) error {
		set.Add(w, guest)
		return nil
	}, distributeddata.Majority) // waits until two of the three have it
	if err != nil {
		fmt.Println("in the set of this member only, so far:", err)
	}
	for c := range guests.Changes(ctx, dd) { // the present value, then each change
		fmt.Println(c.Value)
	}
	return nil
}
