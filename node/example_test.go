package node_test

import (
	"context"
	"net/http"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/singleton"
)

// A complete main function: a member with replicated data and a singleton, which rejoins
// automatically when a pause or a partition has split it off.
func ExampleMain() {
	visits := distributeddata.NewKey("visits", crdt.PNCounter{})
	clerk := func(coordination.Tenure) actor.Actor {
		return actor.ReceiveFunc(func(actor.Context) {})
	}

	health := &node.Health{}
	go func() { _ = http.ListenAndServe("127.0.0.1:8080", health) }()

	node.Main(node.RunConfig{
		Cluster:    "shop",
		MinMembers: 1,
		Remote:     node.Config{Port: 7000, Roles: []string{"backend"}},
		Provider:   automanaged.New(automanaged.Config{Hosts: []string{"127.0.0.1:6330"}}),
		Store:      func() (coordination.Store, error) { return file.Open("/var/lib/shop/leases") },
		Health:     health,
	}, func(n *node.Node) error {
		dd, err := distributeddata.New(n.System, distributeddata.Config{})
		if err != nil {
			return err
		}
		if _, err := singleton.New(n.System, n.Session, singleton.Config{Name: "clerk"},
			clerk); err != nil {
			return err
		}
		n.Go(func(ctx context.Context) error {
			_, err := visits.Update(ctx, dd, func(w *crdt.Writer, c *crdt.PNCounter) error {
				c.Add(w, 1)
				return nil
			}, distributeddata.Local)
			return err
		})
		return nil
	})
}
