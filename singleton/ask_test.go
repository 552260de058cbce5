package singleton_test

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton"
)

// Asks on their way to a killed host return as soon as the host is dropped.
func TestAsk_ToAKilledHostIsUnknownWhenItIsDropped(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 20*time.Second)
		}
		c.Crash(c.Member(0))
		c.node(0).store.away(true)
		asks := make(chan error, 10)
		for range cap(asks) {
			go func() {
				_, err := c.node(2).ask("who", time.Hour)
				asks <- err
			}()
		}
		time.Sleep(time.Second)
		require.Empty(t, asks)
		c.Unlist(c.Live(), []*simnetMember{c.Member(0)})
		synctest.Wait()
		require.Len(t, asks, cap(asks))
		for range cap(asks) {
			err := <-asks
			require.ErrorIs(t, err, singleton.ErrUnknown)
			require.ErrorContains(t, err, "host to which the message was sent is gone")
		}
		host, _ := c.found(c.node(2), 40*time.Second)
		require.Equal(t, "m001", host)
	})
}

// The host is cut off, stays listed, and loses its lease: pending Asks return when the instance is
// found elsewhere.
func TestAsk_ToALostTenureIsUnknownWhenTheNextIsFound(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 20*time.Second)
		}
		// until the lease is lost
		c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("stuck"))
		time.Sleep(100 * time.Millisecond)
		c.node(0).store.away(true)
		start := time.Now()
		_, err := c.node(2).ask("behind it", time.Hour)
		require.ErrorIs(t, err, singleton.ErrUnknown)
		require.Less(t, time.Since(start), 3*ttl)
		host, _ := c.found(c.node(2), time.Second)
		require.Equal(t, "m001", host)
		require.Empty(t, c.alive.notes())
	})
}

// A member that is up was said not to be, and the outcome was unknown half of the time.
func TestAsk_WithAnEndedContextSendsNothing(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		c.found(c.node(0), 20*time.Second)
		ended, end := context.WithCancel(context.Background())
		end()
		for range 20 {
			_, err := c.node(0).single.Ask(ended, wrapperspb.String("x"))
			require.ErrorIs(t, err, context.Canceled)
			require.EqualError(t, err, "singleton: message not delivered: not sent: context canceled")
		}
		_, err := c.node(0).single.Ask(t.Context(), (*wrapperspb.StringValue)(nil))
		require.ErrorIs(t, err, singleton.ErrInvalid)
		require.ErrorContains(t, err, "no message: a nil *wrapperspb.StringValue")
		require.Empty(t, c.alive.notes())
	})
}

// A reader who does not know Proto.Actor's supervision needs to see where an instance panicked.
func TestLog_APanicHasItsReasonAndItsStack(t *testing.T) {
	var log warnings
	var broken atomic.Bool
	broken.Store(true)
	produce := func(_ *testCluster, n *node) func(coordination.Tenure) actor.Actor {
		return func(t coordination.Tenure) actor.Actor {
			if broken.Load() {
				panic("unmakeable")
			}
			return &worker{node: n, tenure: t}
		}
	}
	run(t, 1, options{system: log.system, produce: produce}, func(c *testCluster) {
		time.Sleep(time.Minute)
		line := log.first(t, "singleton instance could not be made")
		require.Contains(t, line, "TestLog_APanicHasItsReasonAndItsStack", "the stack")
		require.Contains(t, log.first(t, "no other member may host"), "reason=unmakeable")
		broken.Store(false)
		c.found(c.node(0), time.Minute)
		c.Member(0).System.Root.Send(c.node(0).single.PID(), wrapperspb.String("panic"))
		time.Sleep(time.Second)
		line = log.first(t, "singleton instance panicked")
		require.Contains(t, line, "singleton_test.(*worker)", "the stack")
	})
}

// A refused message was logged without a reason.
func TestLog_AMessageThatWaitsAtTheEndHasItsReason(t *testing.T) {
	var log warnings
	run(t, 1, options{system: log.system, away: true}, func(c *testCluster) {
		n := c.node(0)
		c.Member(0).System.Root.Send(n.single.PID(), wrapperspb.String("kept"))
		synctest.Wait()
		_ = n.leave(time.Minute)
		require.Contains(t, log.first(t, "message refused"),
			"this member stops before there was a host")
	})
}

// warnings are the lines of all members from Warn.
type warnings struct{ child.Screen }

// system returns an actor system whose lines from Warn go to the log.
func (w *warnings) system(id string) *actor.ActorSystem {
	s := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}))
	s.ID = id
	return s
}

// first returns the first line that contains text.
func (w *warnings) first(t *testing.T, text string) string {
	t.Helper()
	lines := w.With(text)
	require.NotEmpty(t, lines, text)
	return lines[0]
}

// In a planned move no message is lost, so no Ask reports a loss.
func TestAsk_IsAnsweredThroughAPlannedMove(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 20*time.Second)
		}
		const n = 500
		asks, left := make(chan error, n), make(chan error, 1)
		for k := range n {
			if k == n/2 {
				go func() {
					err := c.node(0).leave(20 * time.Second)
					c.Leave(c.Member(0))
					left <- err
				}()
			}
			go func() {
				_, err := c.node(1+k%2).ask(fmt.Sprint("x", k), time.Minute)
				asks <- err
			}()
			time.Sleep(time.Millisecond)
		}
		for range n {
			require.NoError(t, <-asks)
		}
		require.NoError(t, <-left)
		require.Len(t, c.alive.notes(), n)
	})
}

// Messages of the protocol in a form that the protocol does not use are not delivered as user
// messages, and do not vanish.
func TestProtocol_StrayMessagesAreRefusedAndCounted(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		n := c.node(1)
		c.found(n, 20*time.Second)
		refused := 0
		for _, stray := range []any{&pb.SingletonFree{}, &pb.SingletonNews{}, byValue()} {
			if m, ok := stray.(proto.Message); ok {
				_, err := n.single.Ask(context.Background(), m)
				require.ErrorIs(t, err, singleton.ErrInvalid, "%T", stray)
				refused++
			}
			n.System.Root.Send(n.single.PID(), stray)
			n.System.Root.Send(actor.NewPID(n.Address, "concord-singleton-jobs"), stray)
			synctest.Wait()
			refused += 2
			require.EqualValues(t, refused, n.single.Stats().Refused)
		}
		require.Zero(t, n.single.Stats().Ignored)
		view := n.members().View()
		from := wire.Header{Cluster: view.Cluster, Member: view.Self.ID,
			From: view.Self.Incarnation}
		for i, env := range []*pb.Envelope{{}, wire.Seal(from, 49, nil),
			wire.Seal(from, wire.SingletonState, []byte("?"))} {
			n.System.Root.Send(actor.NewPID(n.Address, "concord-singleton-jobs"), env)
			synctest.Wait()
			require.EqualValues(t, i+1, n.single.Stats().Ignored, "%v", env)
		}
		host, _ := c.found(n, time.Second)
		require.Equal(t, "m000", host)
	})
}

// byValue returns an envelope by value, without its pointer.
func byValue() any { return reflect.ValueOf(&pb.Envelope{}).Elem().Interface() }
