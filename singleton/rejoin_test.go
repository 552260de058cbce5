package singleton_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/singleton"
)

// endIncarnation does what node.Run does with an incarnation that was removed.
func endIncarnation(t *testing.T, n *node) (took time.Duration) {
	t.Helper()
	start := time.Now()
	require.NoError(t, lifecycle.Of(n.System).Stop(context.Background(), nil))
	took = time.Since(start)
	_ = n.session.Close(context.Background())
	return took
}

func TestRejoin_TheSingletonWorksAgain(t *testing.T) {
	incarnations := lifecycle.NewIncarnations()
	o := options{cfg: singleton.Config{MinMembers: 3},
		incarnations: map[string]*lifecycle.Incarnations{"node-0:1": incarnations}}
	run(t, 3, o, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 20*time.Second)
		}
		first := c.node(0)
		s := first.single
		c.Expel(c.Member(0))
		<-membership.Attach(first.System).Removed()
		asks := make(chan string, 2)
		for range 2 { // one in the incarnation that ends, one after it
			go func() {
				answer, err := first.ask("who", 30*time.Second)
				asks <- fmt.Sprint(answer, err)
			}()
			synctest.Wait()
			require.Less(t, endIncarnation(t, first), 100*time.Millisecond)
		}
		_, err := first.ask("who", time.Second)
		require.ErrorIs(t, err, lifecycle.ErrRejoining)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `"jobs"`)
		first.System.Root.Send(s.PID(), wrapperspb.String("to the dead letters"))
		_, now := s.Where()
		require.False(t, now)

		second := c.nodes[c.Restart(c.Member(0))]
		require.Same(t, s, second.single)
		require.Equal(t, "m001<nil>", <-asks)
		require.Equal(t, "m001<nil>", <-asks)
		second.System.Root.Send(s.PID(), wrapperspb.String("noted"))
		time.Sleep(time.Second)
		require.Equal(t, []string{"noted"}, c.alive.notes())

		require.NoError(t, c.node(1).leave(20*time.Second)) // the other member hosts again
		c.Leave(c.Member(1))
		require.NoError(t, c.node(2).leave(20*time.Second))
		c.Leave(c.Member(2))
		host, _ := c.found(second, 20*time.Second)
		require.Equal(t, second.ID, host)

		require.NoError(t, lifecycle.Of(second.System).Stop(context.Background(), nil))
		go incarnations.End()
		_, err = second.ask("who", time.Hour)
		require.ErrorIs(t, err, singleton.ErrClosed)
	})
}

// After an application has closed its singleton, Ask does not wait for another incarnation.
func TestRejoin_CloseIsPermanent(t *testing.T) {
	o := options{incarnations: map[string]*lifecycle.Incarnations{
		"node-0:1": lifecycle.NewIncarnations()}}
	run(t, 1, o,
		func(c *testCluster) {
			require.NoError(t, c.node(0).single.Close(context.Background()))
			_, err := c.node(0).ask("who", time.Hour)
			require.ErrorIs(t, err, singleton.ErrClosed)
		})
}

func TestNew_TwiceInOneIncarnationIsInvalid(t *testing.T) {
	for name, incarnations := range map[string]*lifecycle.Incarnations{"one incarnation": nil,
		"several": lifecycle.NewIncarnations()} {
		t.Run(name, func(t *testing.T) {
			o := options{incarnations: map[string]*lifecycle.Incarnations{"node-0:1": incarnations}}
			run(t, 2, o,
				func(c *testCluster) {
					n := c.node(0)
					again := func() error {
						_, err := singleton.New(n.System, n.session, singleton.Config{Name: "jobs"},
							func(coordination.Tenure) actor.Actor { panic("never") })
						return err
					}
					require.ErrorIs(t, again(), singleton.ErrInvalid)
					require.ErrorContains(t, again(),
						`"jobs": singleton: invalid argument: the member has a singleton of this name`)
					host, _ := c.found(n, 20*time.Second)
					require.Equal(t, "m000", host)
				})
		})
	}
}

// The host is busy for a long time, and its cluster has dropped it.
func TestRejoin_ARemovedMemberStopsQuickly(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 20*time.Second)
		}
		for range 100 {
			// 100ms each
			c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("nap"))
		}
		time.Sleep(50 * time.Millisecond)
		c.Expel(c.Member(0))
		<-membership.Attach(c.Member(0).System).Removed()
		took := endIncarnation(t, c.node(0))
		require.Less(t, took, 1300*time.Millisecond)
		host, _ := c.found(c.node(2), 20*time.Second)
		require.Equal(t, "m001", host)
		t.Logf("closed in %v", took)
	})
}

// An actor system takes three megabytes. This one runs alone, without a network.
func TestRejoin_AnEndedIncarnationIsCollected(t *testing.T) {
	var kept []weak.Pointer[actor.ActorSystem]
	simnet.Bubble(t, func(t *testing.T) {
		incarnations := lifecycle.NewIncarnations()
		session, err := coordination.Open(memory.New(), coordination.Config{TTL: ttl})
		require.NoError(t, err)
		var s *singleton.Singleton
		for i := range 4 {
			system := oneIncarnation(t, incarnations, session, i, &s)
			kept = append(kept, system)
			_, now := s.Where()
			require.False(t, now)
		}
		require.NoError(t, session.Close(context.Background()))
		time.Sleep(2 * time.Second)
		for range 5 {
			runtime.GC()
			synctest.Wait()
		}
		for i, p := range kept {
			require.Nil(t, p.Value(), "incarnation %d", i)
		}
		runtime.KeepAlive(s)
		runtime.KeepAlive(incarnations)
	})
}

func oneIncarnation(t *testing.T, incarnations *lifecycle.Incarnations,
	session *coordination.Session, i int, last **singleton.Singleton,
) weak.Pointer[actor.ActorSystem] {
	system := simnet.NewSystem(fmt.Sprint("incarnation", i))
	system.ProcessRegistry.Address = "here:1"
	incarnations.Attach(system)
	s, err := singleton.New(system, session, singleton.Config{Name: "jobs"},
		func(coordination.Tenure) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					ctx.Respond(wrapperspb.String(fmt.Sprint(m.Value, i)))
				}
			})
		})
	require.NoError(t, err)
	require.True(t, *last == nil || *last == s)
	*last = s
	system.Root.Send(s.PID(), wrapperspb.String("before the member is up"))
	system.EventStream.Publish(&cluster.ClusterTopology{
		Members: []*cluster.Member{{Id: system.ID, Host: "here", Port: 1}}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	res, err := singleton.As[*wrapperspb.StringValue](s.Ask(ctx,
		wrapperspb.String("produced in incarnation ")))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint("produced in incarnation ", i), res.Value)
	require.NoError(t, lifecycle.Of(system).Stop(ctx, nil))
	membership.Attach(system).Stop()
	<-membership.Attach(system).Stopped()
	system.Shutdown()
	return weak.Make(system)
}

// A PID that was made before its system had an address names another process at another member. A
// reply to it went there, to a call that waited for something else.
func TestReply_FindsASenderFromBeforeTheStart(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		for i := range 2 {
			c.found(c.node(i), 20*time.Second)
		}
		n := c.node(1) // the other member hosts
		var got []any
		collect := actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
				got = append(got, m.Value)
			}
		})
		_, err := n.System.Root.SpawnNamed(collect, "early")
		require.NoError(t, err)
		n.System.Root.RequestWithCustomSender(n.single.PID(), wrapperspb.String("who"),
			actor.NewPID("nonhost", "early"))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, got, 1)
	})
}
