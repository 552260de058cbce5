package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
)

// livesAt returns an entity that lives at a node, after it has answered n other nodes.
func (c *testCluster) livesAt(n *node) string {
	for i := range 100 {
		id := fmt.Sprint("at", i)
		for _, from := range c.all() {
			_, err := from.ask(id, "who", 20*time.Second)
			require.NoError(c.t, err)
		}
		if c.alive.host(id) == n {
			return id
		}
	}
	c.t.Fatal("no entity lives there")
	return ""
}

// asks returns the errors of n calls from a node that are pending.
func (n *node) asks(id, text string, calls int) <-chan error {
	errs := make(chan error, calls)
	for range calls {
		go func() {
			_, err := n.ask(id, text, time.Hour)
			errs <- err
		}()
	}
	return errs
}

// Asks on their way to a killed host return as soon as the host is dropped.
func TestAsk_ToAKilledHostIsUnknownWhenItIsDropped(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		killed, from := c.node(1), c.node(2)
		id := c.livesAt(killed)
		c.Crash(killed.Member)
		killed.store.away(true)
		errs := from.asks(id, "lost", 10)
		time.Sleep(time.Second)
		require.Empty(t, errs)
		c.Unlist(c.Live(), []*simnet.Member{killed.Member})
		synctest.Wait()
		require.Len(t, errs, cap(errs))
		for range cap(errs) {
			err := <-errs
			require.ErrorIs(t, err, sharding.ErrUnknown)
			require.ErrorContains(t, err, "the host to which the message was sent is gone")
		}
		c.alive.forget(killed)
		require.NotZero(t, c.settled(2*stale, c.node(0), from))
		_, err := from.ask(id, "again", time.Second)
		require.NoError(t, err)
	})
}

// The host loses its lease while an entity is at work, and stays listed: pending Asks return when
// the shard is active elsewhere.
func TestAsk_ToALostTenureIsUnknownWhenTheNextBegins(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		host, from := c.node(1), c.node(2)
		id := c.livesAt(host)
		host.store.away(true)
		start := time.Now()
		errs := from.asks(id, "stuck", 1)
		require.ErrorIs(t, <-errs, sharding.ErrUnknown)
		require.Less(t, time.Since(start), 3*ttl)
		at, err := from.ask(id, "who", time.Second)
		require.NoError(t, err)
		require.NotEqual(t, host.ID, at)
	})
}

// In a planned move no message is lost, so no Ask reports a loss, not even one whose answer comes
// after the move.
func TestAsk_IsAnsweredThroughAPlannedMove(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		leaver, from := c.node(1), c.node(2)
		id := c.livesAt(leaver)
		slow := from.asks(id, "later", 3)
		const n = 300
		errs, left := make(chan error, n), make(chan error, 1)
		for k := range n {
			if k == n/2 {
				go func() { left <- leaver.region.Close(context.Background()) }()
			}
			go func() {
				_, err := from.ask(fmt.Sprint("x", k%20), fmt.Sprint(k), time.Minute)
				errs <- err
			}()
			time.Sleep(10 * time.Millisecond)
		}
		for range n {
			require.NoError(t, <-errs)
		}
		require.NoError(t, <-left)
		for range cap(slow) {
			require.NoError(t, <-slow)
		}
	})
}

// An Ask that no member will answer any more ends with the incarnation of this member.
func TestAsk_EndsWithItsIncarnation(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		id := c.livesAt(c.node(0))
		errs := c.node(1).asks(id, "swallow", 1)
		time.Sleep(time.Second)
		require.NoError(t, c.node(1).leave(20*time.Second))
		synctest.Wait()
		require.Len(t, errs, 1)
		require.ErrorIs(t, <-errs, sharding.ErrUnknown)
		_, err := c.node(1).region.Ref(id).Ask(context.Background(), wrapperspb.String("x"))
		require.ErrorIs(t, err, sharding.ErrClosed)
	})
}

// A host that has no tenure of the shard says so to the caller.
func TestAsk_ThatMeetsNoTenureIsUndelivered(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		host, from := c.node(1), c.node(0)
		id := c.livesAt(host)
		c.Net.Partition([]string{host.Address}, []string{from.Address})
		host.store.away(true)
		for host.region.Status().Count(sharding.Active) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		c.Net.Heal() // nothing of what the host said has arrived
		_, err := from.ask(id, "nobody", time.Minute)
		require.ErrorIs(t, err, sharding.ErrUndelivered)
		require.NotErrorIs(t, err, sharding.ErrUnknown)
	})
}

// replies creates entities that reply to a text with the value of that name, and nothing else.
func replies(values map[string]any, handled *atomic.Int64,
) func(*node) func(sharding.Entity) actor.Actor {
	return func(*node) func(sharding.Entity) actor.Actor {
		return func(sharding.Entity) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					handled.Add(1)
					ctx.Respond(values[m.Value])
				}
			})
		}
	}
}

// A reply that would be lost between members is an error on one member too. It matches no error of
// this module, even if the entity replies with one: the message was handled, and is not sent again.
func TestAsk_AReplyThatIsNotProtobufIsAnError(t *testing.T) {
	var handled atomic.Int64
	values := map[string]any{"text": "a Go string", "error": errors.New("no money"), "nil": nil,
		"unsent": fmt.Errorf("other: %w", sharding.ErrUndelivered), "closed": sharding.ErrClosed,
		"rejoining": lifecycle.ErrRejoining}
	run(t, 1, options{produce: replies(values, &handled)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for name, text := range map[string]string{"text": "the reply is a string: only protobuf",
			"error": "the reply is an error value (*errors.errorString: no money)",
			"nil":   "the reply is a <nil>", "unsent": sharding.ErrUndelivered.Error(),
			"closed": sharding.ErrClosed.Error(), "rejoining": "so respond with one that has"} {
			handled.Store(0)
			reply, err := c.node(0).region.Ref("x").Ask(short(c.t), wrapperspb.String(name))
			require.Nil(t, reply)
			require.ErrorContains(t, err, "sharding: the message was handled, but the reply is a")
			require.ErrorContains(t, err, text)
			for _, other := range []error{sharding.ErrUndelivered, sharding.ErrClosed,
				sharding.ErrUnknown, lifecycle.ErrRejoining} {
				require.NotErrorIs(t, err, other, name)
			}
			require.EqualValues(t, 1, handled.Load(), name)
		}
	})
}

// The reply of an entity at another member is lost, and Ask waits until its context ends.
func TestAsk_AReplyOfAnotherMemberThatIsNotProtobufIsLost(t *testing.T) {
	var handled atomic.Int64
	values := map[string]any{"who": errors.New("as asked")}
	run(t, 2, options{produce: replies(values, &handled), lossy: true}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		home, other := c.homeOf("x")
		_, err := other.region.Ref("x").Ask(short(c.t), wrapperspb.String("who"))
		require.ErrorIs(t, err, sharding.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualValues(t, 1, handled.Load())
		require.Equal(t, []string{"*errors.errorString"}, c.Net.Unserialisable())
		_, err = home.region.Ref("x").Ask(short(c.t), wrapperspb.String("who"))
		require.ErrorContains(t, err, "the message was handled")
	})
}

// As gives the reply its type. Another type is an error that names both, and an error of Ask is
// returned as it is.
func TestAs_ReturnsTheReplyOrTheError(t *testing.T) {
	var handled atomic.Int64
	values := map[string]any{"number": wrapperspb.UInt64(7)}
	run(t, 1, options{produce: replies(values, &handled)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		ref := c.node(0).region.Ref("x")
		number, err := sharding.As[*wrapperspb.UInt64Value](ref.Ask(short(c.t),
			wrapperspb.String("number")))
		require.NoError(t, err)
		require.EqualValues(t, 7, number.Value)
		text, err := sharding.As[*wrapperspb.StringValue](ref.Ask(short(c.t),
			wrapperspb.String("number")))
		require.EqualError(t, err, "sharding: the message was handled, but the reply is a "+
			"*wrapperspb.UInt64Value, not a *wrapperspb.StringValue")
		require.Nil(t, text)
		_, err = sharding.As[*wrapperspb.StringValue](c.node(0).region.Ref("").Ask(short(c.t),
			wrapperspb.String("number")))
		require.ErrorIs(t, err, sharding.ErrInvalid)
	})
}
