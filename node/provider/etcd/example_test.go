package etcd_test

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/etcd"
)

// A member that finds the others through etcd.
func Example() {
	node.Main(node.RunConfig{
		Cluster: "shop",
		Remote:  node.Config{Host: "10.0.0.1", Port: 7000, SecretFile: "/etc/shop/secret"},
		Provider: etcd.New(etcd.Config{
			Client: clientv3.Config{Endpoints: []string{"10.0.0.5:2379"}},
		}),
	}, func(*node.Node) error { return nil })
}
