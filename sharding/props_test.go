package sharding_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/sharding"
)

// A PID of Activate is good at every member until the incarnation ends; then a request is answered
// with a dead letter, and Activate returns the PID of the next one.
func TestActivate_ThePIDIsThatOfTheIncarnation(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for _, id := range []string{"ann", "bob", "cid", "dan"} {
			pid, err := c.node(0).region.Ref(id).Activate(ctx)
			require.NoError(t, err)
			again, err := c.node(1).region.Ref(id).Activate(ctx)
			require.NoError(t, err)
			require.True(t, pid.Equal(again), "%v and %v", pid, again)
			text := func(text string) error {
				_, err := ask.Request(ctx, c.node(1).System, pid, wrapperspb.String(text))
				return err
			}
			require.NoError(t, text("hello"))
			c.node(0).tell(id, "passivate")
			for err = text("hello"); err == nil; err = text("hello") {
				time.Sleep(time.Millisecond)
			}
			require.ErrorIs(t, err, ask.ErrDeadLetter)
			next, err := c.node(1).region.Ref(id).Activate(ctx)
			require.NoError(t, err)
			require.False(t, pid.Equal(next))
		}
	})
}

// Many members may ask for an entity that does not run yet; each gets the PID of the one.
func TestActivate_WhileTheEntityStarts(t *testing.T) {
	run(t, 2, options{produce: func(n *node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			time.Sleep(time.Second) // Activate does not wait for this
			return &entity{node: n, Entity: e}
		}
	}}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		answers := make(chan string, 20)
		begun := time.Now()
		for i := range cap(answers) {
			go func() {
				pid, err := c.node(i % 2).region.Ref("ann").Activate(context.Background())
				if err != nil {
					answers <- err.Error()
					return
				}
				answers <- pid.String()
			}()
		}
		first := <-answers
		for range cap(answers) - 1 {
			require.Equal(t, first, <-answers)
		}
		require.Less(t, time.Since(begun), time.Second)
	})
}

func TestActivate_Refuses(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		_, err := c.node(0).region.Ref("").Activate(context.Background())
		require.ErrorIs(t, err, sharding.ErrInvalid)
		_, err = sharding.Ref[message]{}.Activate(context.Background())
		require.ErrorIs(t, err, sharding.ErrInvalid)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = c.node(0).region.Ref("ann").Activate(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A function that fails is logged, and asked again after a pause.
func TestNewFromProps_AnEntityThatCannotBeMade(t *testing.T) {
	var tries atomic.Int64
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			ctx.Respond(m)
		}
	})
	blueprint := func(sharding.Entity) (*actor.Props, func(actor.Context), error) {
		switch tries.Add(1) {
		case 1:
			return nil, nil, errors.New("no database")
		case 2:
			return nil, nil, nil
		case 3:
			panic("as asked")
		case 4:
			return props, func(actor.Context) { panic("in init") }, nil
		}
		return props, nil, nil
	}
	run(t, 1, options{unaware: func(int) bool { return true }}, func(c *testCluster) {
		n := c.node(0)
		session, err := coordination.Open(c.store, coordination.Config{Owner: n.ID})
		require.NoError(t, err)
		defer func() { _ = session.Close(context.Background()) }()
		region, err := sharding.NewFromProps[message](n.System, session, n.data, config(0),
			blueprint)
		require.NoError(t, err)
		defer func() { _ = region.Close(context.Background()) }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		res, err := sharding.As[*wrapperspb.StringValue](region.Ref("ann").Ask(ctx,
			wrapperspb.String("hello")))
		require.NoError(t, err)
		require.Equal(t, "hello", res.Value)
		require.EqualValues(t, 5, tries.Load())
		require.EqualValues(t, 4, region.Stats().Failed)
	})
	_, err := sharding.NewFromProps[message](nil, nil, nil, config(0), nil)
	require.ErrorIs(t, err, sharding.ErrInvalid)
	require.ErrorContains(t, err, "no produce function")
}
