package zookeeper_test

import (
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/zookeeper"
)

// A member that finds the others through ZooKeeper.
func Example() {
	node.Main(node.RunConfig{
		Cluster: "shop",
		Remote:  node.Config{Host: "10.0.0.1", Port: 7000, SecretFile: "/etc/shop/secret"},
		Provider: zookeeper.New(zookeeper.Config{
			Servers: []string{"10.0.0.5:2181", "10.0.0.6:2181"},
		}),
	}, func(*node.Node) error { return nil })
}
