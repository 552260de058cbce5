package grain_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/grain"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

// A member with virtual actors of one kind, each of which works only under a lease of its own.
func Example() {
	ctx := context.Background()
	store, err := file.Open("/var/lib/bank/leases")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	session, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(ctx)
	accounts, err := grain.NewKind("account", session, grain.Config{},
		func(id *cluster.ClusterIdentity, t coordination.Tenure) actor.Actor {
			return &account{name: id.Identity, tenure: t}
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	remote, err1 := node.Remote(node.Config{Port: 7000})
	provider, err2 := automanaged.New(automanaged.Config{Hosts: []string{"127.0.0.1:6330"}})()
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	system := actor.NewActorSystem()
	c := cluster.New(system, node.Cluster("bank", provider, remote, cluster.WithKinds(accounts)))
	if err := node.Start(ctx, c); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { fmt.Println(node.Shutdown(ctx, c)) }()
	fmt.Println(c.Get("ann", "account")) // activates the grain
}
