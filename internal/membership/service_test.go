package membership_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestAttachIsIdempotentAndRaceFree(t *testing.T) {
	system := simnet.NewSystem("")
	_, ok := membership.Lookup(system)
	require.False(t, ok)
	var wg sync.WaitGroup
	services := make([]*membership.Service, 20)
	for i := range services {
		wg.Go(func() { services[i] = membership.Attach(system) })
	}
	wg.Wait()
	for _, s := range services {
		require.Same(t, services[0], s)
	}
	require.EqualValues(t, 1, count(system), "one subscription")
	services[0].Stop()
	services[0].Stop()
	<-services[0].Stopped()
	require.Zero(t, count(system))
}

// count returns the number of event handlers of system beyond those of a new system.
func count(system *actor.ActorSystem) int32 {
	return system.EventStream.Length() - simnet.NewSystem("").EventStream.Length()
}

func TestManySystemsInOneProcess(t *testing.T) {
	for range 120 { // the registry has room for a hundred ids
		membership.Attach(simnet.NewSystem("")).Stop()
	}
}

func TestWhenUpRunsInOrderAndOnce(t *testing.T) {
	simnet.Run(t, simnet.Config{}, func(t *testing.T, c *simnet.Cluster) {
		m := c.Start("a:1")
		s := membership.Attach(m.System)
		var mu sync.Mutex
		var ran []int
		note := func(i int) func(membership.Member) {
			return func(self membership.Member) {
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, "a:1", self.Address)
				require.NotNil(t, s.View())
				ran = append(ran, i)
			}
		}
		s.WhenUp(note(0))
		s.WhenUp(func(membership.Member) { panic("a component that cannot start") })
		s.WhenUp(func(self membership.Member) { s.WhenUp(note(2)); note(1)(self) })
		synctest.Wait()
		require.Empty(t, ran)
		c.List([]*simnet.Member{m}, []*simnet.Member{m})
		synctest.Wait()
		require.Equal(t, []int{0, 1, 2}, ran)
		s.WhenUp(note(3)) // at once
		require.Equal(t, []int{0, 1, 2, 3}, ran)
		pass(time.Minute)
		require.Len(t, ran, 4)
	})
}

func TestSubscribersGetEveryViewInOrder(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 1, Setup: attach}, func(t *testing.T, c *simnet.Cluster) {
		s := membership.Attach(c.Member(0).System)
		var got []*membership.View
		pid := c.Member(0).System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				s.Subscribe(ctx.Self())
			case *membership.View:
				got = append(got, m)
			}
		}))
		synctest.Wait()
		require.Len(t, got, 1, "the latest at once")
		c.Join()
		pass(time.Second)
		require.Greater(t, len(got), 1)
		require.Same(t, s.View(), got[len(got)-1])
		for i := 1; i < len(got); i++ {
			require.False(t, got[i].Hash == got[i-1].Hash, "a view for each change only")
		}
		n := len(got)
		s.Unsubscribe(pid)
		c.Join()
		pass(time.Second)
		require.Len(t, got, n)
	})
}

func TestReady(t *testing.T) {
	simnet.Run(t, simnet.Config{}, func(t *testing.T, c *simnet.Cluster) {
		m := c.Start("a:1")
		s := membership.Attach(m.System)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Ready(ctx), context.DeadlineExceeded)
		go func() {
			time.Sleep(time.Minute)
			c.List([]*simnet.Member{m}, []*simnet.Member{m})
		}()
		require.NoError(t, s.Ready(t.Context()))
		require.NotZero(t, s.View().Self.Stamp)

		s = membership.Attach(c.Start("b:1").System)
		go func() { time.Sleep(time.Minute); s.Stop() }()
		require.ErrorIs(t, s.Ready(t.Context()), membership.ErrStopped)
	})
}

func TestStoppedServiceIsSilent(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2, Setup: attach}, func(t *testing.T, c *simnet.Cluster) {
		pass(time.Second)
		s := membership.Attach(c.Member(0).System)
		last := s.View()
		s.Stop()
		<-s.Stopped()
		sent := s.Stats().Sent
		c.Join()
		c.Unlist([]*simnet.Member{c.Member(0)}, []*simnet.Member{c.Member(0)})
		pass(time.Minute)
		require.Equal(t, sent, s.Stats().Sent)
		require.Same(t, last, s.View())
		require.False(t, removed(c.Member(0)), "who leaves is not removed")
	})
}

// Proto.Actor publishes under the lock of its member list, so a handler that waits there would
// deadlock. In this test every view is read under the lock of the publisher.
func TestTheTopologyHandlerWaitsForNothing(t *testing.T) {
	simnet.Run(t, simnet.Config{}, func(t *testing.T, c *simnet.Cluster) {
		m := c.Start("a:1")
		s := membership.Attach(m.System)
		var lock sync.Mutex
		up := false
		s.WhenUp(func(membership.Member) {
			lock.Lock()
			defer lock.Unlock()
			up = true
		})
		lock.Lock()
		c.List([]*simnet.Member{m}, []*simnet.Member{m})
		c.Unlist([]*simnet.Member{m}, []*simnet.Member{m})
		require.False(t, up)
		lock.Unlock()
		synctest.Wait()
		require.True(t, up)
	})
}

func TestHelloOfOthersIsRefusedAndCounted(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2, Setup: attach}, func(t *testing.T, c *simnet.Cluster) {
		pass(time.Second)
		a, b := c.Member(0), c.Member(1)
		s := membership.Attach(a.System)
		send := func(m proto.Message) {
			b.System.Root.Send(actor.NewPID(a.Address, membership.ActorName), m)
			pass(10 * time.Millisecond)
		}
		before, was := s.View(), s.Stats()
		payload, err := proto.Marshal(&pb.Hello{Address: b.Address, Sequence: 1000})
		require.NoError(t, err)
		h := wire.Header{Member: b.ID, From: 1}
		foreign := h
		foreign.Cluster = "other"
		send(wire.Seal(foreign, wire.MembershipHello, payload))
		send(wire.Seal(h, wire.ReplicatorBeat, payload))
		send(wire.Seal(h, wire.MembershipHello, []byte{0xff}))
		send(wire.Seal(h, wire.MembershipHello, make([]byte, 100_000)))
		stranger := h
		stranger.Member = "nobody"
		send(wire.Seal(stranger, wire.MembershipHello, payload))
		future := wire.Seal(h, wire.MembershipHello, payload)
		future.Version = 9
		send(future)
		send(wrapperspb.String("not even an envelope"))
		now := s.Stats()
		require.EqualValues(t, 2, now.Foreign-was.Foreign)
		require.EqualValues(t, 3, now.Malformed-was.Malformed)
		require.EqualValues(t, 1, now.Stranger-was.Stranger)
		require.Same(t, before, s.View())
	})
}

func TestTheClusterNameSeparates(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		c := simnet.NewCluster(simnet.Config{Members: 1, Setup: func(m *simnet.Member) {
			m.System.Extensions.Register(&cluster.Cluster{Config: &cluster.Config{Name: "shop"}})
			attach(m)
		}})
		defer c.Close()
		synctest.Wait()
		require.Equal(t, "shop", view(c.Member(0)).Cluster)
	})
}

func TestViewAnswers(t *testing.T) {
	v := &membership.View{Members: []membership.Member{
		{ID: "a", Address: "x:1", Stamp: 5, Roles: []string{"web"}},
		{ID: "b", Address: "y:1", Stamp: 3},
		{ID: "c", Address: "z:1"},
		{ID: "d", Address: "x:1", Stamp: 5, Roles: []string{"db", "web"}},
	}}
	require.Equal(t, []string{"b", "a", "d"}, ids(v.ByAge("")))
	require.Equal(t, []string{"a", "d"}, ids(v.ByAge("web")))
	o, ok := v.Oldest("db")
	require.True(t, ok)
	require.Equal(t, "d", o.ID)
	_, ok = v.Find("e")
	require.False(t, ok)
	m, _ := v.FindAddress("x:1")
	require.Equal(t, "d", m.ID)
	got := v.ByAge("")
	slices.Reverse(got)
	require.Equal(t, "a", v.Members[0].ID, "the slice is the caller's")
}
