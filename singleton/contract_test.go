package singleton_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/singleton"
)

// The tests of this file are of single sentences of the documentation.

// Tries: 1 moves the instance after each failure.
func TestTries_OneMovesAfterEachFailure(t *testing.T) {
	run(t, 2, options{cfg: singleton.Config{Tries: 1}}, func(c *testCluster) {
		host, _ := c.found(c.node(1), 20*time.Second)
		require.Equal(t, "m000", host)
		c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("panic"))
		time.Sleep(time.Second)
		host, _ = c.found(c.node(1), 20*time.Second)
		require.Equal(t, "m001", host)
	})
}

// StopMessage: a lost lease stops the instance at once in any case.
func TestStopMessage_IsNotSentAfterALoss(t *testing.T) {
	run(t, 1, options{cfg: singleton.Config{StopMessage: "finish", HandOver: time.Hour}},
		func(c *testCluster) {
			c.found(c.node(0), 20*time.Second)
			c.node(0).store.away(true)
			time.Sleep(ttl)
			require.Zero(t, c.alive.count(), "the worker ignores the StopMessage")
		})
}

// replies makes instances that reply to a text with the value of that name, and nothing else.
func replies(values map[string]any,
) func(*testCluster, *node) func(coordination.Tenure) actor.Actor {
	return func(c *testCluster, _ *node) func(coordination.Tenure) actor.Actor {
		return func(coordination.Tenure) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					c.alive.note(m.Value)
					ctx.Respond(values[m.Value])
				}
			})
		}
	}
}

// A reply that would be lost between members is an error on one member too. It matches no error of
// this module, even if the instance replies with one: the message was handled, and is not sent
// again. The reply of an instance at another member is lost, and Ask waits until its context ends.
func TestAsk_AReplyThatIsNotProtobufIsAnError(t *testing.T) {
	values := map[string]any{"text": "a Go string", "error": errors.New("no money"), "nil": nil,
		"unsent": fmt.Errorf("other: %w", singleton.ErrUndelivered),
		"closed": singleton.ErrClosed, "rejoining": lifecycle.ErrRejoining}
	run(t, 2, options{produce: replies(values), lossy: true}, func(c *testCluster) {
		ask := func(i int, text string) error {
			within, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			reply, err := c.node(i).single.Ask(within, wrapperspb.String(text))
			require.Nil(t, reply)
			return err
		}
		texts := map[string]string{"text": "the reply is a string: only protobuf",
			"error": "the reply is an error value (*errors.errorString: no money)",
			"nil":   "the reply is a <nil>", "unsent": singleton.ErrUndelivered.Error(),
			"closed": singleton.ErrClosed.Error(), "rejoining": "so respond with one that has"}
		for name, text := range texts {
			err := ask(0, name)
			require.ErrorContains(t, err, "singleton: the message was handled, but the reply is a")
			require.ErrorContains(t, err, text)
			for _, other := range []error{singleton.ErrUndelivered, singleton.ErrClosed,
				singleton.ErrUnknown, lifecycle.ErrRejoining} {
				require.NotErrorIs(t, err, other, name)
			}
		}
		require.Len(t, c.alive.notes(), len(texts), "each is handled once")
		err := ask(1, "error")
		require.ErrorIs(t, err, singleton.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, c.alive.notes(), len(texts)+1)
		require.Equal(t, []string{"*errors.errorString"}, c.Net.Unserialisable())
	})
}

// As gives the reply its type. Another type is an error that names both, and an error of Ask is
// returned as it is.
func TestAs_ReturnsTheReplyOrTheError(t *testing.T) {
	o := options{produce: replies(map[string]any{"number": wrapperspb.UInt64(7)})}
	run(t, 1, o, func(c *testCluster) {
		within, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		s := c.node(0).single
		number, err := singleton.As[*wrapperspb.UInt64Value](s.Ask(within,
			wrapperspb.String("number")))
		require.NoError(t, err)
		require.EqualValues(t, 7, number.Value)
		text, err := singleton.As[*wrapperspb.StringValue](s.Ask(within,
			wrapperspb.String("number")))
		require.EqualError(t, err, "singleton: the message was handled, but the reply is a "+
			"*wrapperspb.UInt64Value, not a *wrapperspb.StringValue")
		require.Nil(t, text)
		_, err = singleton.As[*wrapperspb.StringValue](s.Ask(within, nil))
		require.ErrorIs(t, err, singleton.ErrInvalid)
	})
}

// Watch: a slow reader skips changes, but never the last one. The sequence continues after Close.
// Where: false comes with the last known place.
func TestWatch_ASlowReaderSeesTheLastChange(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for place, known := range c.node(2).single.Watch(ctx) {
				c.alive.note(fmt.Sprint(place.Token, known))
				time.Sleep(time.Minute)
			}
		}()
		c.found(c.node(2), 20*time.Second)
		require.NoError(t, c.node(0).single.Close(context.Background()))
		c.found(c.node(2), 20*time.Second)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"0 false", "2 true"}, c.alive.notes())
		require.NoError(t, c.node(2).single.Close(context.Background()))
		place, known := c.node(2).single.Where()
		require.False(t, known)
		require.Equal(t, coordination.Token(2), place.Token)
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"0 false", "2 true", "2 false"}, c.alive.notes())
		cancel()
		<-ended
		synctest.Wait()
	})
}

// orderly notes the calls of a Warm instance.
type orderly struct{ worker }

func (o *orderly) HandOver() proto.Message {
	o.node.c.alive.note("HandOver")
	return wrapperspb.Bool(true)
}

func (o *orderly) TakeOver(coordination.Token, proto.Message) { o.node.c.alive.note("TakeOver") }

func (o *orderly) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started, *actor.Stopping:
		o.node.c.alive.note(fmt.Sprintf("%T", ctx.Message()))
	}
	o.worker.Receive(ctx)
}

// Warm: HandOver is called after the last message and before *actor.Stopping, TakeOver before
// *actor.Started; neither when the instance stops by itself or HandOver is over.
func TestWarm_TheOrderOfCalls(t *testing.T) {
	for name, want := range map[string][]string{
		"last": {"last", "HandOver", "*actor.Stopping", "TakeOver", "*actor.Started"},
		"stop": {"*actor.Stopping", "*actor.Started", "HandOver", "*actor.Stopping", "TakeOver",
			"*actor.Started"},
		"sleep": {"*actor.Stopping", "*actor.Started"}, // for 5s
	} {
		t.Run(name, func(t *testing.T) {
			o := options{cfg: singleton.Config{HandOver: time.Second},
				produce: func(_ *testCluster, n *node) func(coordination.Tenure) actor.Actor {
					return func(t coordination.Tenure) actor.Actor {
						return &orderly{worker{node: n, tenure: t}}
					}
				}}
			run(t, 2, o, func(c *testCluster) {
				c.found(c.node(1), 20*time.Second)
				c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String(name))
				if time.Sleep(10 * time.Millisecond); name == "stop" {
					time.Sleep(time.Second)
				}
				require.NoError(t, c.node(0).single.Close(context.Background()))
				c.found(c.node(1), 20*time.Second)
				require.Equal(t, append([]string{"*actor.Started"}, want...), c.alive.notes())
			})
		})
	}
}
