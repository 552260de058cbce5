package etcd_test

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
)

// A program opens a client, a store and a session, and closes them in the opposite order.
func Example() {
	client, err := etcd.Dial(clientv3.Config{Endpoints: []string{"10.0.0.5:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	store, err := etcd.New(client, etcd.Config{})
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
