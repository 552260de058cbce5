package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/sharding"
)

// Whichever effect panics at one member, which gets shards and gives them away: it is counted as a
// bug, and afterwards every shard has one home where messages are handled.
func TestPanic_InAnyEffectTheShardsGoOn(t *testing.T) {
	for _, kind := range []string{"Tell", "Deliver", "Acquire", "Start", "Stop", "Release",
		"Assigned", "Conclude"} {
		for _, nth := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(kind, " ", nth), func(t *testing.T) {
				var left atomic.Int64
				left.Store(int64(nth))
				o := options{plant: func(effect any) {
					t := reflect.TypeOf(effect)
					if t.Name() == kind && strings.Contains(t.PkgPath(), "/sharding/") {
						if left.Add(-1) == 0 {
							panic("planted")
						}
					}
				}}
				run(t, 3, o, func(c *testCluster) { c.throughPanic(&left) })
			})
		}
	}
}

func (c *testCluster) throughPanic(left *atomic.Int64) {
	for i := range 3 {
		for id := range 30 {
			c.node(i).tell(fmt.Sprint("cart-", id), "first")
		}
	}
	time.Sleep(3 * stale)
	gate.Of(c.Member(0).System).Shut("test", "to move")
	time.Sleep(3 * stale)
	gate.Of(c.Member(0).System).Let("test")
	time.Sleep(3 * stale)
	unknown := 0
	for id := range 30 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := c.node(0).region.Ref(fmt.Sprint("cart-", id)).Deliver(ctx, wrapperspb.String("next"))
		defer cancel()
		if errors.Is(err, sharding.ErrUnknown) && ctx.Err() == nil {
			unknown++ // the conclusion was lost
			continue
		}
		require.NoError(c.t, err)
	}
	require.LessOrEqual(c.t, unknown, 1)
	require.LessOrEqual(c.t, left.Load(), int64(0), "the effect was carried out")
	time.Sleep(3 * stale)
	for id := range 30 {
		for i := range 3 {
			_, err := c.node(i).ask(fmt.Sprint("cart-", id), "last", 10*time.Second)
			require.NoError(c.t, err)
		}
	}
	require.EqualValues(c.t, 1, c.node(0).region.Stats().Panics)
}

// What this package sends to an actor that has stopped becomes a dead letter. The subscribers of
// the event stream then run on a goroutine of this package, and a panic there would end the
// process.
func TestPanic_OfASubscriberIsNotABugOfThisPackage(t *testing.T) {
	var taken atomic.Int64
	o := options{setup: func(n *node) {
		n.System.EventStream.Subscribe(func(e any) {
			d, is := e.(*actor.DeadLetterEvent)
			if !is {
				return
			}
			if _, is = d.Message.(actor.SystemMessage); !is { // there Proto.Actor itself panics
				taken.Add(1)
				panic("the application's")
			}
		})
	}}
	run(t, 3, o, func(c *testCluster) {
		nobody := actor.NewPID(c.node(0).System.Address(), "nobody")
		for id := range 30 {
			e := &sharding.Envelope{ID: fmt.Sprint("cart-", id), Message: wrapperspb.String("who")}
			c.node(id%3).System.Root.RequestWithCustomSender(c.node(id%3).region.PID(), e, nobody)
		}
		time.Sleep(10 * time.Second)
		c.node(2).store.away(true)
		require.Error(t, c.node(2).leave(time.Second)) // its leases are released later
		c.node(2).store.away(false)
		time.Sleep(time.Minute)
		for id := range 30 {
			_, err := c.node(id%2).ask(fmt.Sprint("cart-", id), "last", 10*time.Second)
			require.NoError(t, err)
		}
		require.NoError(t, c.node(1).leave(20*time.Second))
		require.NoError(t, c.node(0).leave(20*time.Second))
		time.Sleep(10 * time.Second)
		for i := range 3 {
			require.Zero(t, c.node(i).region.Stats().Panics)
			require.NoError(t, bugs.Of(c.node(i).System).Check())
		}
	})
	require.Positive(t, taken.Load())
}
