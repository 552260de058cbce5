// Command cart is a shopping cart with majority writes and local reads. If no majority is reachable
// it uses the local replica: the write has still been applied locally and is replicated later, and
// a read may miss recent changes.
//
//	go run ./examples/cart
//
//	member 1 adds milk: saved
//	member 3 is cut off
//	member 3 adds bread: kept here, 1 of 2 replicas
//	member 3 shows {bread milk}: as of this member
//	member 1 removes milk: saved
//	member 1 shows {}: as of a majority
//	the network is whole again, and member 3's change is replicated
//	member 2 shows {bread}: as of a majority
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/internal/three"
)

// Items is the type of a cart. An add of an item wins over a concurrent remove.
type Items = crdt.ORSet[string]

// Carts are the carts of all customers.
var Carts = distributeddata.NewPrefix("cart-", Items{})

// change changes a cart, and returns how safely the change is stored.
func change(ctx context.Context, dd *distributeddata.Replicator, customer string, f func(w *crdt.Writer, items *Items)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := Carts.Key(customer).Update(ctx, dd, func(w *crdt.Writer, items *Items) error {
		f(w, items)
		return nil
	}, distributeddata.Majority)
	if q, ok := errors.AsType[*distributeddata.QuorumError](err); ok {
		return fmt.Sprintf("kept here, %d of %d replicas", q.Answered, q.Needed), nil
	}
	return "saved", err
}

// show reads a cart, and returns how recent the result is.
func show(ctx context.Context, dd *distributeddata.Replicator, customer string) (string, error) {
	short, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	key, as := Carts.Key(customer), "a majority"
	items, err := key.Get(short, dd, distributeddata.Majority)
	if errors.Is(err, distributeddata.ErrQuorum) {
		as = "this member"
		items, err = key.Get(ctx, dd) // does not wait
	}
	if errors.Is(err, distributeddata.ErrNotFound) {
		err = nil // an empty cart has no entry
	}
	return fmt.Sprint(items, ": as of ", as), err
}

func main() { three.Main(run) }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	add := func(item string) func(w *crdt.Writer, items *Items) {
		return func(w *crdt.Writer, items *Items) { items.Add(w, item) }
	}
	remove := func(item string) func(w *crdt.Writer, items *Items) {
		return func(w *crdt.Writer, items *Items) { items.Remove(w, item) }
	}
	for _, step := range []struct {
		member int
		what   string
		change func(w *crdt.Writer, items *Items) // nil: the cart is shown
		before func()
	}{
		{1, "adds milk", add("milk"), nil},
		{3, "adds bread", add("bread"), func() { fmt.Fprintln(out, "member 3 is cut off"); c.Cut(2) }},
		{3, "shows", nil, nil},
		{1, "removes milk", remove("milk"), nil},
		{1, "shows", nil, nil},
		{2, "shows", nil, func() {
			fmt.Fprintln(out, "the network is whole again, and member 3's change is replicated")
			c.Heal()
			_, _ = Carts.Key("17").Get(ctx, c.DD[1], distributeddata.All) // until it has
		}},
	} {
		if step.before != nil {
			step.before()
		}
		dd := c.DD[step.member-1]
		if step.change == nil {
			cart, err := show(ctx, dd, "17")
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "member %d shows %s\n", step.member, cart)
			continue
		}
		result, err := change(ctx, dd, "17", step.change)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "member %d %s: %s\n", step.member, step.what, result)
	}
	return nil
}
