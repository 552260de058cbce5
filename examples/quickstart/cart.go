package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// cart is the replicated value of one cart: items and their quantities.
type cart = crdt.LWWMap[string, int64]

const cartPrefix = "cart/"

func cartKey(name string) distributeddata.Key[cart] {
	return distributeddata.NewKey(cartPrefix+name, cart{})
}

// shop gives one node access to the replicated carts.
type shop struct{ dd *distributeddata.Replicator }

// apply applies a set, remove or clear, and returns when a majority of the nodes has it.
func (s shop) apply(ctx context.Context, e event) error {
	_, err := cartKey(e.Cart).Update(ctx, s.dd, func(w *crdt.Writer, c *cart) error {
		switch e.Op {
		case "set":
			c.Set(w, e.Item, e.Qty)
		case "remove":
			c.Remove(w, e.Item)
		case "clear":
			c.Clear(w)
		default:
			return fmt.Errorf("no such operation on a cart: %q", e.Op)
		}
		return nil
	}, distributeddata.Majority)
	return err
}

// carts reads every cart from this node's own replica.
func (s shop) carts(ctx context.Context) (carts, error) {
	all := carts{}
	for key := range s.dd.Keys() {
		name, ok := strings.CutPrefix(key, cartPrefix)
		if !ok {
			continue
		}
		c, err := cartKey(name).Get(ctx, s.dd)
		if errors.Is(err, distributeddata.ErrNotFound) {
			continue // emptied in the meantime
		}
		if err != nil {
			return nil, err
		}
		all[name] = maps.Collect(c.All())
	}
	return all, nil
}
