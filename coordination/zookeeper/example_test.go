package zookeeper_test

import (
	"context"
	"fmt"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/zookeeper"
)

// A program opens a store and a session, and closes them in the opposite order.
func Example() {
	ctx := context.Background()
	store, err := zookeeper.Open(ctx, zookeeper.Config{
		Servers: []string{"10.0.0.5:2181", "10.0.0.6:2181"}})
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
	fmt.Println(session.Lease("report").Do(ctx, work))
}

func work(context.Context, *coordination.Grant) error { return nil }
