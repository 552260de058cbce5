package distributeddata_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// Items is the type of a shopping cart in these examples.
type Items = crdt.ORSet[string]

// Cart is an entry. Keys are cheap: create them as needed.
var Cart = distributeddata.NewKey("cart-17", Items{})

// Ordinary code changes and reads an entry.
func ExampleKey_Update() {
	ctx := context.Background()
	_, dd, stop := startMember() // a member of a cluster with a replicator, see package node
	defer stop()

	items, err := Cart.Update(ctx, dd, func(w *crdt.Writer, items *Items) error {
		if items.Len() >= 100 {
			return errors.New("cart is full") // rejects the update
		}
		items.Add(w, "milk", "bread")
		return nil
	}, distributeddata.Majority)
	if q, ok := errors.AsType[*distributeddata.QuorumError](err); ok {
		fmt.Println("kept here, still spreading; no answer from", q.Missing)
	}
	fmt.Println(items.Len(), err)

	items, err = Cart.Get(ctx, dd) // local, never waits
	for item := range items.All() {
		fmt.Println(item)
	}
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// bread
	// milk
	// <nil>
}

// An actor sends messages instead, and receives the answer as a message of its own protocol.
func ExampleUpdate() {
	system, dd, stop := startMember()
	defer stop()

	type saved struct{ err error }
	done := make(chan error)
	shopper := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case string:
			ctx.Request(dd.PID(), &distributeddata.Update[Items]{
				Key:    Cart,
				At:     distributeddata.Majority,
				Modify: func(w *crdt.Writer, items *Items) error { items.Add(w, m); return nil },
				Adapt: func(r *distributeddata.UpdateResponse[Items]) any {
					_, err := r.Result()
					return &saved{err}
				},
			})
		case *saved:
			done <- m.err
		}
	}))
	system.Root.Send(shopper, "milk")
	fmt.Println(<-done)
	// Output: <nil>
}

// Several entries change together: every member shows all of it or nothing.
func ExampleAtomically() {
	ctx := context.Background()
	_, dd, stop := startMember()
	defer stop()

	stock := distributeddata.NewKey("stock", crdt.PNCounter{})
	orders := distributeddata.NewKey("orders", crdt.ORSet[string]{})
	err := distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
		stock.In(tx).Add(tx.Writer, -1)
		orders.In(tx).Add(tx.Writer, "order-4711")
		return nil
	}, distributeddata.Majority)

	now := dd.Snapshot() // consistent reads
	left, _ := stock.Of(now)
	placed, _ := orders.Of(now)
	fmt.Println(left.Value(), placed.Len(), err)
	// Output: -1 1 <nil>
}

// A map of millions of elements is spread over several entries.
func ExampleShardedMap() {
	ctx := context.Background()
	_, dd, stop := startMember()
	defer stop()

	stock := distributeddata.NewShardedMap("stock", 256, crdt.ORMap[string, crdt.PNCounter]{})
	for i, article := range []string{"milk", "bread", "butter"} {
		_, err := stock.Update(ctx, dd, article, func(w *crdt.Writer, n *crdt.PNCounter) error {
			n.Add(w, int64(i+1))
			return nil
		}, distributeddata.Local)
		if err != nil {
			fmt.Println(err)
		}
	}
	n, err := stock.Get(ctx, dd, "butter") // local, never waits
	fmt.Println(n.Value(), err)

	now, err := stock.Of(dd.Snapshot()) // all shards at one instant
	fmt.Println(now.Len(), err)

	other := distributeddata.NewShardedMap("stock", 16, crdt.ORMap[string, crdt.PNCounter]{})
	_, err = other.Get(ctx, dd, "butter")
	fmt.Println(errors.Is(err, distributeddata.ErrInvalid))
	// Output:
	// 3 <nil>
	// 3 <nil>
	// true
}

// A set of millions of elements is spread likewise; a transaction changes several of them.
func ExampleShardedSet() {
	ctx := context.Background()
	_, dd, stop := startMember()
	defer stop()

	seen := distributeddata.NewShardedSet("seen", 64, crdt.ORSet[string]{})
	fmt.Println(seen.Add(ctx, dd, "4711", distributeddata.Majority))
	err := distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
		if !seen.ContainsIn(tx, "4712") {
			seen.AddIn(tx, "4712", "4713")
		}
		return nil
	}, distributeddata.Local)
	fmt.Println(err)
	ok, err := seen.Contains(ctx, dd, "4713") // local, never waits
	fmt.Println(ok, err)
	for change := range seen.Changes(ctx, dd) { // first what is there, then each change
		fmt.Println(change.Element, change.Removed)
		break
	}
	// Output:
	// <nil>
	// <nil>
	// true <nil>
	// 4711 false
}
