package sharding_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/sharding"
)

// A member is cut off from the others, and rejoins. What it accepted meanwhile waits and is handled
// in order, before later messages; also an Ask. With a request, whose actor has ended, and with
// everything if it does not rejoin, it is one dead letter.
func TestRejoin_WaitingMessagesAreHandledAfterwards(t *testing.T) {
	incarnations := lifecycle.NewIncarnations()
	var dead reported
	o := options{incarnations: map[string]*lifecycle.Incarnations{"node-0:1": incarnations},
		cfg: func(int) sharding.Config {
			return sharding.Config{Type: "cart", Shards: 16, Buffer: 1000}
		}, setup: func(n *node) { dead.at(n) }}
	run(t, 3, o, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		first, n := c.node(0), 0
		tell := func(binding *node, count int) {
			for range count {
				binding.tell(fmt.Sprint("e", n%20), fmt.Sprint(n))
				n++
			}
		}
		end := func(binding *node) {
			tell(binding, 200)
			require.NoError(t, lifecycle.Of(binding.System).Stop(context.Background(), nil))
			_ = binding.session.Close(context.Background())
			err := binding.region.Ref("e1").Tell(wrapperspb.String("never"))
			require.ErrorIs(t, err, sharding.ErrClosed)
		}
		c.Expel(first.Member)
		time.Sleep(stale)
		answers := make(chan error, 1)
		go func() {
			_, err := first.ask("e3", "who", time.Minute)
			answers <- err
		}()
		time.Sleep(time.Millisecond) // the question waits, too
		end(first)
		second := c.nodes[c.Restart(first.Member)]
		tell(second, 100)
		time.Sleep(20 * time.Second)
		require.NoError(t, <-answers)
		for e := range 20 {
			var want []string
			for k := e; k < n; k += 20 {
				want = append(want, fmt.Sprint(k))
			}
			require.Equal(t, want, c.alive.notes(fmt.Sprintf("e%d ", e)))
		}
		require.Empty(t, dead.all())
		require.EqualValues(t, 1, second.region.Stats().Refused, "the one between the incarnations")

		c.Expel(second.Member)
		time.Sleep(stale)
		end(second)
		require.Empty(t, dead.all())
		incarnations.End()
		require.Len(t, dead.all(), 200)
		require.EqualValues(t, 202, second.region.Stats().Refused)
	})
}

// While the member rejoins, Tell returns ErrClosed, Status is empty, Ask and Deliver wait and
// continue in the next incarnation, or say that the context ended between incarnations. Counters go
// on. A request that waits when the incarnation of its actor ends is one dead letter.
func TestRejoin_WhatEachCallDoesMeanwhile(t *testing.T) {
	incarnations := lifecycle.NewIncarnations()
	var dead reported
	o := options{incarnations: map[string]*lifecycle.Incarnations{"node-0:1": incarnations},
		setup: func(n *node) { dead.at(n) }}
	run(t, 3, o, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		first := c.node(0)
		_, err := first.ask("before", "who", time.Second)
		require.NoError(t, err)
		c.Expel(first.Member)
		time.Sleep(stale)
		asker := first.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if ctx.Message() == "request" {
				ctx.Respond(first.region.Ref("x").Request(ctx, wrapperspb.String("of an actor")))
			}
		}))
		res, err := first.System.Root.RequestFuture(asker, "request", time.Second).Result()
		require.NoError(t, err)
		require.Nil(t, res)
		delivered := make(chan error, 2)
		go func() { delivered <- first.deliver("x", "begun before", time.Minute) }()
		time.Sleep(10 * time.Millisecond)
		before := first.region.Stats()
		require.NoError(t, lifecycle.Of(first.System).Stop(context.Background(), nil))
		_ = first.session.Close(context.Background())
		require.Equal(t, []string{"of an actor"}, dead.all())

		require.Empty(t, first.region.Status().Shards)
		require.ErrorIs(t, first.region.Ref("x").Tell(wrapperspb.String("t")), sharding.ErrClosed)
		_, err = first.ask("x", "who", time.Second)
		require.ErrorIs(t, err, lifecycle.ErrRejoining)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, first.deliver("x", "d", time.Second), lifecycle.ErrRejoining)
		_, err = first.region.ClusterStats(short(c.t))
		require.ErrorIs(t, err, sharding.ErrClosed)
		go func() { delivered <- first.deliver("x", "begun between", time.Minute) }()
		asked := make(chan error, 1)
		go func() {
			_, err := first.ask("x", "who", time.Minute)
			asked <- err
		}()
		second := c.nodes[c.Restart(first.Member)]
		require.NoError(t, <-asked)
		require.NoError(t, <-delivered)
		require.NoError(t, <-delivered)
		got := c.alive.notes("x ")
		slices.Sort(got)
		require.Equal(t, []string{"begun before", "begun between"}, got)
		require.GreaterOrEqual(t, second.region.Stats().Refused, before.Refused+3)
		require.GreaterOrEqual(t, second.region.Stats().Started, before.Started)
		incarnations.End()
	})
}
