package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/sharding"
)

// The header of a message to the PID of a region reaches its entity, here and at another member:
// the fencing token of fence.Envelope is one. The entity answers its Sender.
func TestRegion_PassesHeadersOn(t *testing.T) {
	produce := func(*node) func(sharding.Entity) actor.Actor {
		return func(sharding.Entity) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.StringValue); !ok {
					return
				}
				token, err := fence.TokenOfMessage(ctx.MessageHeader())
				ctx.Respond(wrapperspb.String(fmt.Sprint(token, err)))
			})
		}
	}
	run(t, 2, options{produce: produce}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		n := c.node(0)
		g, err := n.session.Lease("author").Acquire(context.Background())
		require.NoError(t, err)
		for k := range 20 { // on both members
			answer := actor.NewFuture(n.System, time.Second)
			e, err := fence.Envelope(g, &sharding.Envelope{ID: fmt.Sprint("e", k),
				Message: wrapperspb.String("write")})
			require.NoError(t, err)
			e.Sender = answer.PID()
			n.System.Root.Send(n.region.PID(), e)
			res, err := answer.Result()
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(g.Token(), error(nil)),
				res.(*wrapperspb.StringValue).Value)
		}
		require.NoError(t, g.Release(context.Background()))
	})
}
