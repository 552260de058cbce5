package kubernetes_test

import (
	"context"
	"fmt"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/kubernetes"
)

// A program in a pod keeps its leases in Lease objects of its namespace. It needs the rights of
// examples/kubernetes/rbac.yaml.
func Example() {
	store, err := kubernetes.InCluster(kubernetes.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	session, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(context.Background())
	fmt.Println(session.Lease("report").Do(context.Background(), work))
}

func work(context.Context, *coordination.Grant) error { return nil }
