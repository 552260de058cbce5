package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/examples/three"
	"github.com/concord-go/concord/sharding"
)

func set(nr uint64, item string) numbered {
	return numbered{event{Op: "set", Cart: "c1", Item: item, Qty: 1}, nr}
}

// tenure is a tenure whose end the cart does not know yet.
type tenure coordination.Token

func (t tenure) Token() coordination.Token { return coordination.Token(t) }
func (tenure) Context() context.Context    { return context.Background() }
func (tenure) Check() error                { return nil }

// A former host may wake up at any time, with an event of its own under way.
func TestCart_AFormerHostHasNoEffect(t *testing.T) {
	three.CheckRun(t, func(_ context.Context, _ io.Writer, c *three.Cluster) error {
		open := func(at int, token tenure) *cart {
			return newCart(c.DD[at])(sharding.Entity{ID: "c1", Tenure: token}).(*cart)
		}
		handle := func(c *cart, e numbered) error {
			err := c.apply(e)
			if err == nil {
				c.last = e.Nr
			}
			return err
		}
		former := open(0, 1)
		require.NoError(t, handle(former, set(1, "milk")))
		present := open(1, 2)
		require.EqualValues(t, 1, present.last, "what was acknowledged is found")

		// The former host has stored event 2, and its answer reaches the driver: the present host
		// notices that it has missed an event, and its next incarnation has it.
		require.NoError(t, handle(former, set(2, "bread")))
		require.EqualError(t, handle(present, set(3, "salt")), "event 3 comes after event 1")
		present = open(1, 2)
		require.NoError(t, handle(present, set(3, "salt")))

		// It wakes up once more.
		require.ErrorIs(t, handle(former, set(3, "salt")), fence.ErrStale)
		want := map[string]int64{"milk": 1, "bread": 1, "salt": 1}
		for i := range three.Members {
			require.EqualValues(t, 3, open(i, 3).last)
			got, err := readCarts(c.DD[i])
			require.NoError(t, err)
			require.Equal(t, carts{"c1": want}, got)
		}
		return nil
	})
}

// An input may have any names of carts.
func TestCart_AnyNameHasAnID(t *testing.T) {
	ids := map[string]bool{}
	for _, name := range []string{"c1", "茶", "a b/c%", "tab\t", "nul\x00", "*", "cart*", "a*b",
		"100%", "100%25", "\u0085"} {
		id := cartID(name)
		require.False(t, ids[id], fmt.Sprintf("%q", name))
		ids[id] = true
		require.NotRegexp(t, `[[:cntrl:]]|\*$`, id)
		back, err := url.PathUnescape(id)
		require.NoError(t, err)
		require.Equal(t, name, back)
	}
	require.Equal(t, "a b/茶", cartID("a b/茶"))
}

func TestDeal_NumbersTheEventsOfEachCart(t *testing.T) {
	got := map[string][]uint64{}
	for _, queue := range new(shopkeeper).deal([]event{
		{Op: "set", Cart: "a"}, {Op: "set", Cart: "b"}, {Op: "checkout", Cart: "a"},
		{Op: "clear", Cart: "a"},
	}) {
		for _, c := range queue {
			for _, e := range c {
				got[e.Cart] = append(got[e.Cart], e.Nr)
			}
		}
	}
	require.Equal(t, map[string][]uint64{"a": {1, 0, 2}, "b": {1}}, got)
}
