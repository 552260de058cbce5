package sharding_test

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// orders is a store, such as a table of a database, that rejects lower tokens of the same order.
type orders interface {
	// Ship records a shipment. It does nothing if it has recorded the id before.
	Ship(order, id string, token uint64) error
}

// order handles each shipment at least once, and stores the id of the delivery with it, so that the
// shipment takes effect once.
type order struct {
	sharding.Entity
	store orders
}

func (o *order) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.StringValue); !ok {
		return
	}
	d, _ := sharding.DeliveryOf(ctx)
	if err := o.store.Ship(o.ID, d.ID, uint64(o.Token())); err != nil {
		panic(err) // the message is delivered again
	}
}

// A sender waits until the entity has handled a message, however often its shard moves meanwhile.
func ExampleRef_Deliver() {
	var (
		store  orders
		region *sharding.Region[*wrapperspb.StringValue] // the result of New with produce
	)
	produce := func(e sharding.Entity) actor.Actor { return &order{e, store} }

	ship := func(id, item string) error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := region.Ref(id).Deliver(ctx, wrapperspb.String(item))
		switch {
		case err == nil: // Receive has returned
		case errors.Is(err, sharding.ErrUnknown): // it may have been handled, or may still be
			log.Printf("order %s: ask it what it has shipped: %v", id, err)
		default: // it was certainly not handled
			log.Printf("order %s: try again later: %v", id, err)
		}
		return err
	}
	_, _ = produce, ship
}
