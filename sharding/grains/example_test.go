package grains_test

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/protobuf/protoc-gen-go-grain/test/hello"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/node"
	members "github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/sharding/grains"
)

// A program of Proto.Actor, in which one call has replaced disthash.New().
func Example() {
	store, err := file.Open("/var/lib/shop/leases")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	system := actor.NewActorSystem()
	lookup, err := grains.New(system, grains.Config{Store: store, MinMembers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := cluster.New(system, cluster.Configure("shop", automanaged.New(), lookup,
		remote.Configure("127.0.0.1", 0), cluster.WithKinds(hello.GetHelloKind())))
	c.StartMember()
	defer c.Shutdown(true)
	fmt.Println(hello.GetHelloGrainClient(c, "ann").SayHello(&emptypb.Empty{}))
}

// A member under node.Run, which heals the cluster after a partition.
func Example_run() {
	cfg := node.RunConfig{
		Cluster:    "shop",
		MinMembers: 2,
		Remote:     node.Config{Port: 7000},
		Provider:   members.New(members.Config{Hosts: []string{"127.0.0.1:6330"}}),
		Store: func() (coordination.Store, error) {
			return file.Open("/var/lib/shop/leases")
		},
		Options: []cluster.ConfigOption{cluster.WithKinds(hello.GetHelloKind())},
		Lookup: func(n *node.Node) (cluster.IdentityLookup, error) {
			return grains.New(n.System, grains.Config{Session: n.Session})
		},
	}
	node.Main(cfg, func(n *node.Node) error {
		n.Go(func(context.Context) error {
			fmt.Println(hello.GetHelloGrainClient(n.Cluster, "ann").SayHello(&emptypb.Empty{}))
			return nil
		})
		return nil
	})
}
