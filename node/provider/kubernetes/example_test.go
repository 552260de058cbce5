package kubernetes_test

import (
	"os"

	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/kubernetes"
)

// A member in a pod, which finds the others through the labels of their pods.
func Example() {
	node.Main(node.RunConfig{
		Cluster: "shop",
		Remote: node.Config{Host: os.Getenv("POD_IP"), Port: 7000,
			SecretFile: "/etc/shop/secret"},
		Provider: kubernetes.New(kubernetes.Config{}),
	}, func(*node.Node) error { return nil })
}
