package singleton_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
)

// stuck is an instance that blocks in Receive, whatever happens to its lease.
type stuck struct {
	worker
}

func (s *stuck) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*wrapperspb.StringValue); ok && m.Value == "block" {
		s.node.c.alive.stop(&s.worker) // only its token protects from here on
		<-s.node.c.blocked
		return
	}
	s.worker.Receive(ctx)
}

func blocking() options {
	return options{produce: func(_ *testCluster, n *node) func(coordination.Tenure) actor.Actor {
		return func(t coordination.Tenure) actor.Actor {
			return &stuck{worker{node: n, tenure: t}}
		}
	}}
}

// A host that has lost its lease while its instance blocks in Receive passes questions and messages
// on to the next host, and does not take the instance back before it can make one.
func TestStuck_AnInstanceElsewhereIsReachedAndStays(t *testing.T) {
	run(t, 3, blocking(), func(c *testCluster) {
		c.found(c.node(2), 20*time.Second)
		c.Member(2).System.Root.Send(c.node(2).single.PID(), wrapperspb.String("block"))
		c.node(0).store.away(true)
		time.Sleep(ttl + stale) // the lease expires
		for i := range 3 {
			host, took := c.found(c.node(i), 20*time.Second)
			require.Equal(t, "m001", host)
			require.Less(t, took, 2*time.Second, "from %d", i)
		}
		c.node(0).store.away(false)
		for range 60 {
			time.Sleep(5 * time.Second)
			host, took := c.found(c.node(0), 5*time.Second)
			require.Equal(t, "m001", host)
			require.Less(t, took, time.Second)
		}
		c.unblock()
		time.Sleep(time.Minute)
		host, _ := c.found(c.node(2), time.Second)
		require.Equal(t, "m000", host, "the oldest hosts again when it can")
	})
}

// The same if the lease was lost for another reason, so that the member need not decline for its
// store.
func TestStuck_AfterARevokedLeaseAnotherMemberHosts(t *testing.T) {
	run(t, 2, blocking(), func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("block"))
		time.Sleep(time.Second)
		lease := c.node(1).session.Lease("singleton-jobs")
		h, err := lease.Holder(context.Background())
		require.NoError(t, err)
		require.NoError(t, lease.ForceRelease(context.Background(), h.Token))
		for k := range 60_000 { // the holder reads the record every three TTLs
			c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String(fmt.Sprint(k)))
			time.Sleep(time.Millisecond)
		}
		told := c.alive.notes()
		for i := range 2 {
			host, took := c.found(c.node(i), 20*time.Second)
			require.Equal(t, "m001", host)
			require.Less(t, took, 2*time.Second, "from %d", i)
		}
		c.unblock()
		time.Sleep(time.Minute)
		require.Len(t, c.alive.notes(), len(told), "kept for the instance that blocked")
	})
}

// A member stops, with a deadline, while its instance blocks in Receive. Closing the session does
// not release the lease: another member hosts when the lease has expired, not before.
func TestStuck_ASessionThatClosesDoesNotReleaseTheLease(t *testing.T) {
	run(t, 2, blocking(), func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		first := c.node(0)
		first.System.Root.Send(first.single.PID(), wrapperspb.String("block"))
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, first.single.Close(ctx), context.DeadlineExceeded)
		closed := time.Now()
		require.ErrorIs(t, first.session.Close(context.Background()), coordination.ErrUnknown)
		require.Less(t, time.Since(closed), 3*time.Second, "Close waits for the work")
		host, _ := c.found(c.node(1), 30*time.Second)
		require.Equal(t, "m001", host)
		took := time.Since(closed)
		require.Greater(t, took, ttl-3*time.Second, "hosted before the lease has expired")
		require.Less(t, took, stale+5*time.Second)
		c.unblock()
	})
}

// The incarnation of a member ends while its instance blocks in Receive. The next incarnation has
// the same session, but it does not take the lease over before it has expired.
func TestStuck_TheNextIncarnationDoesNotTakeTheLease(t *testing.T) {
	o := blocking()
	o.incarnations = map[string]*lifecycle.Incarnations{"node-0:1": lifecycle.NewIncarnations()}
	o.sessions = map[string]*coordination.Session{}
	run(t, 1, o, func(c *testCluster) {
		first := c.node(0)
		c.found(first, 20*time.Second)
		first.System.Root.Send(first.single.PID(), wrapperspb.String("block"))
		time.Sleep(time.Second)
		c.Expel(c.Member(0))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.Error(t, lifecycle.Of(first.System).Stop(ctx, nil))
		ended := time.Now()
		second := c.nodes[c.Restart(c.Member(0))]
		require.Same(t, first.session, second.session)
		host, _ := c.found(second, 30*time.Second)
		require.Equal(t, second.ID, host)
		require.Greater(t, time.Since(ended), ttl-4*time.Second, "beside the former instance")
		c.unblock()
		time.Sleep(time.Minute)
		c.found(second, time.Second)
		go o.incarnations["node-0:1"].End()
	})
}
