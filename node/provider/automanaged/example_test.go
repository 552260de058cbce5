package automanaged_test

import (
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
)

// A member of a cluster with three known hosts. Hosts lists the health addresses, not those of
// remoting. The port of the health requests is 6330 unless Config.Port is set.
func Example() {
	node.Main(node.RunConfig{
		Cluster: "shop",
		Remote:  node.Config{Host: "10.0.0.1", Port: 7000, SecretFile: "/etc/shop/secret"},
		Provider: automanaged.New(automanaged.Config{
			Hosts: []string{"10.0.0.1:6330", "10.0.0.2:6330", "10.0.0.3:6330"},
		}),
	}, func(*node.Node) error { return nil })
}
