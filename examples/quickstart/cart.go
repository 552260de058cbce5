package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/sharding"
)

// A cart is an entity: an actor with an id, alive on one node, and reached from every node. Its
// node holds the lease of the shard that the cart is in. When that node dies, another one gets the
// lease and starts the cart again from the replicated data.
//
// A paused node can wake up and continue with an event although the cart is on another node by
// then. Two numbers make that harmless. Each tenure of a lease has a larger token, and of two
// quantities of an item the one with the higher token stays. And the events of a cart are numbered,
// and event n is applied only to the cart after event n-1: an event that is sent again has no
// second effect, and a cart that has missed one notices it.

// cartMessage is a numbered event as JSON. A cart answers with its number when a majority of the
// nodes has the result. A real program would define its own protobuf messages.
type cartMessage = *wrapperspb.StringValue

// numbered is an event and its number among the events of its cart, from 1.
type numbered struct {
	event
	Nr uint64 `json:"nr"`
}

// contents is what is stored of a cart: the quantity of each item, 0 if it was removed. No item is
// called "": under that name is the number of the last event.
type contents = crdt.ORMap[string, fence.Register[int64]]

// stored has the contents of all carts, under the ids of their entities. Every node has a copy.
var stored = distributeddata.NewPrefix("cart/", contents{})

// patience is how long a cart waits for a majority. It must end within Config.HandOff, so that a
// cart that cannot reach the other nodes does not delay a move of its shard.
const patience = time.Second

// cart is the entity.
type cart struct {
	sharding.Entity
	dd   *distributeddata.Replicator
	last uint64 // number of the last event
}

// newCart returns the function that creates carts. A cart continues with the contents that its
// earlier incarnations have stored at a majority, here or on other nodes.
func newCart(dd *distributeddata.Replicator) func(sharding.Entity) actor.Actor {
	return func(e sharding.Entity) actor.Actor {
		ctx, cancel := context.WithTimeout(e.Context(), patience)
		defer cancel()
		v, err := stored.Key(e.ID).Get(ctx, dd, distributeddata.Linearizable)
		if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
			return nil // the function is called again after a pause; messages wait
		}
		return &cart{Entity: e, dd: dd, last: uint64(quantity(v, ""))}
	}
}

// Receive implements actor.Actor.
func (c *cart) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(cartMessage)
	if !ok {
		return
	}
	var e numbered
	if err := json.Unmarshal([]byte(m.Value), &e); err != nil {
		return
	}
	if e.Nr > c.last {
		if err := c.apply(e); err != nil {
			// The event may or may not be stored. The driver repeats it, and the next incarnation
			// of the cart reads what is stored.
			ctx.Stop(ctx.Self())
			return
		}
		c.last = e.Nr
	}
	ctx.Respond(wrapperspb.UInt64(e.Nr))
}

// apply returns when a majority of the nodes has the result of an event. Meanwhile this cart waits,
// and no other.
func (c *cart) apply(e numbered) error {
	if e.Nr != c.last+1 {
		return fmt.Errorf("event %d comes after event %d", e.Nr, c.last)
	}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	_, err := stored.Key(c.ID).Update(ctx, c.dd, func(w *crdt.Writer, v *contents) error {
		put := func(item string, n int64) {
			v.Update(w, item, func(r *fence.Register[int64]) { r.Set(w, c.Token(), n) })
		}
		switch put("", int64(e.Nr)); e.Op {
		case "set":
			put(e.Item, e.Qty)
		case "remove":
			put(e.Item, 0)
		case "clear":
			for item := range quantities(*v) {
				put(item, 0)
			}
		default:
			return fmt.Errorf("no such operation on a cart: %q", e.Op)
		}
		return nil
	}, distributeddata.Majority)
	return err
}

func quantity(v contents, item string) int64 {
	r, _ := v.Get(item)
	n, _ := r.Value()
	return n
}

// quantities returns the items that are in a cart.
func quantities(v contents) map[string]int64 {
	items := map[string]int64{}
	for item := range v.Keys() {
		if n := quantity(v, item); n > 0 && item != "" {
			items[item] = n
		}
	}
	return items
}

// cartID returns the entity of a cart: its name, escaped as in a URL where ids must not have a
// character.
func cartID(name string) string {
	var id strings.Builder
	for _, r := range name {
		if !unicode.IsControl(r) && !strings.ContainsRune("%*", r) {
			id.WriteRune(r)
			continue
		}
		for _, b := range []byte(string(r)) {
			fmt.Fprintf(&id, "%%%02X", b)
		}
	}
	return id.String()
}

// tellCart sends an event to its cart, on whichever node it is, and returns when the cart has
// answered.
func tellCart(ctx context.Context, all *sharding.Region[cartMessage], e numbered) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = all.Ref(cartID(e.Cart)).Ask(ctx, wrapperspb.String(string(text)))
	return err
}

// readCarts returns the carts that are not empty, from this node's own replica.
func readCarts(dd *distributeddata.Replicator) (carts, error) {
	all := carts{}
	for key, v := range stored.Of(dd.Snapshot()) {
		id, _ := stored.Rest(key)
		name, err := url.PathUnescape(id)
		if err != nil {
			return nil, err
		}
		if items := quantities(v); len(items) > 0 {
			all[name] = items
		}
	}
	return all, nil
}
