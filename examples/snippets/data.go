package snippets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// Basket and the rest are of docs/replicated-data.md.
type Basket = crdt.ORSet[string]

var (
	baskets = distributeddata.NewPrefix("basket-", Basket{})
	stock   = distributeddata.NewKey("stock", crdt.PNCounter{})
	orders  = distributeddata.NewKey("orders", crdt.ORSet[string]{})
)

// Put is of docs/replicated-data.md.
func Put(ctx context.Context, dd *distributeddata.Replicator, id string) error {
	items, err := baskets.Key(id).Update(ctx, dd, func(w *crdt.Writer, items *Basket) error {
		if items.Len() >= 100 {
			return errors.New("the basket is full") // nothing changes
		}
		items.Add(w, "milk")
		return nil
	}, distributeddata.Majority)
	if err != nil {
		return err
	}
	fmt.Println(items) // the value after the change
	return nil
}

// Outcome is of docs/replicated-data.md.
func Outcome(err error) error {
	switch quorum, ok := errors.AsType[*distributeddata.QuorumError](err); {
	case err == nil: // as many replicas have it as the level requires
	case ok: // it stands here and spreads; these members have not confirmed it
		slog.Warn("not on a majority yet", "missing", quorum.Missing)
	case errors.Is(err, distributeddata.ErrUnknown): // it may have happened
	default: // nothing has changed
		return err
	}
	return nil
}

// Read is of docs/replicated-data.md.
func Read(ctx context.Context, dd *distributeddata.Replicator, id string) (int, error) {
	items, err := baskets.Key(id).Get(ctx, dd, distributeddata.Majority)
	// A missing entry is an empty value.
	if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
		return 0, err
	}
	return items.Len(), nil
}

// Order is of docs/replicated-data.md.
func Order(ctx context.Context, dd *distributeddata.Replicator, id string) error {
	return distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
		stock.In(tx).Add(tx.Writer, -1)
		orders.In(tx).Add(tx.Writer, id)
		return nil
	}, distributeddata.Majority)
}

// Placed is of docs/replicated-data.md.
func Placed(dd *distributeddata.Replicator) (int64, int) {
	now := dd.Snapshot()     // one instant
	left, _ := stock.Of(now) // a missing entry is an empty value
	placed, _ := orders.Of(now)
	return left.Value(), placed.Len()
}

// Follow is of docs/replicated-data.md.
func Follow(ctx context.Context, dd *distributeddata.Replicator) {
	for c := range baskets.Changes(ctx, dd) {
		added, removed := c.Value.Diff(c.Old)
		fmt.Println(c.Key, slices.Collect(added), slices.Collect(removed))
	}
}

// shelf is the actor of docs/replicated-data.md.
type shelf struct {
	dd     *distributeddata.Replicator
	basket distributeddata.Key[Basket]
}

// Receive implements actor.Actor.
func (s *shelf) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.dd.Request(c, &distributeddata.Subscribe[Basket]{Key: s.basket, Subscriber: c.Self()})
	case string:
		s.dd.Request(c, &distributeddata.Update[Basket]{Key: s.basket, At: distributeddata.Majority,
			Modify: func(w *crdt.Writer, items *Basket) error {
				items.Add(w, m)
				return nil
			}})
	case *distributeddata.Changed[Basket]: // the present value, then each change
		fmt.Println(m.Value)
	case distributeddata.Response: // the answer of any request, of any type
		if errors.Is(m.Err(), distributeddata.ErrQuorum) {
			fmt.Println("not on a majority yet")
		}
	}
}

// Shelf returns that actor.
func Shelf(dd *distributeddata.Replicator) actor.Actor {
	return &shelf{dd: dd, basket: baskets.Key("17")}
}
