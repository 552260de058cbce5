package singleton_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/singleton"
)

// A grant that arrives when its member does not want to host any more is released on arrival.
func TestZombie_LateGrantIsReleased(t *testing.T) {
	run(t, 2, options{away: true}, func(c *testCluster) {
		c.node(0).store.slow(800 * time.Millisecond)
		c.node(0).store.away(false)
		// Wait until its claim is written; the answer is still in flight.
		for rec := (leasestore.Record{}); rec.Nonce == ""; {
			time.Sleep(10 * time.Millisecond)
			rec, _, _ = c.store.Load(context.Background(), "singleton-jobs")
		}
		c.node(0).store.slow(0)
		c.node(1).store.away(false)
		require.NoError(t, c.node(0).single.Close(context.Background()))
		host, took := c.found(c.node(1), 5*time.Second)
		require.Equal(t, "m001", host)
		require.Equal(t, []string{"m001"}, c.alive.starts)
		t.Logf("the other member has it after %v", took)
	})
}

func TestHandOver_StopMessageLetsTheInstanceFinish(t *testing.T) {
	o := options{cfg: singleton.Config{StopMessage: wrapperspb.String("stop")}}
	run(t, 2, o, func(c *testCluster) {
		c.found(c.node(0), 20*time.Second)
		time.Sleep(time.Second)
		for k := range 10 {
			c.Member(0).System.Root.Send(c.node(0).single.PID(),
				wrapperspb.String(fmt.Sprint("x", k)))
		}
		require.NoError(t, c.node(0).leave(20*time.Second))
		host, _ := c.found(c.node(1), time.Second)
		require.Equal(t, "m001", host)
		// Messages that came too late for the first instance are passed on meanwhile.
		time.Sleep(50 * time.Millisecond)
		require.Equal(t, texts("x", 10), c.alive.notes())
		require.Less(t, c.alive.gap(), 500*time.Millisecond)
	})
}

// An instance that ignores the stop message is stopped when HandOver has passed; the release waits
// for its termination.
func TestHandOver_StubbornInstanceIsStopped(t *testing.T) {
	o := options{cfg: singleton.Config{StopMessage: wrapperspb.String("ignored"),
		HandOver: 3 * time.Second}}
	run(t, 2, o, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		start := time.Now()
		require.NoError(t, c.node(0).leave(20*time.Second))
		require.InDelta(t, 3, time.Since(start).Seconds(), 1.1)
		host, _ := c.found(c.node(1), time.Second)
		require.Equal(t, "m001", host)
	})
}

// A Receive that does not return delays the release of the lease: no other instance starts.
// Seen in client-go 728, actor-ts 949.
func TestHandOver_BlockedInstanceKeepsTheLease(t *testing.T) {
	run(t, 2, options{cfg: singleton.Config{HandOver: time.Second}}, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("sleep")) // 5s
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		require.NoError(t, c.node(0).single.Close(context.Background()))
		require.InDelta(t, 5, time.Since(start).Seconds(), 1.1)
		host, _ := c.found(c.node(1), time.Second)
		require.Equal(t, "m001", host)
	})
}

// If the context ends first, Close returns without waiting, and nothing is left behind.
func TestClose_ContextEndsFirst(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("sleep"))
		time.Sleep(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := c.node(0).single.Close(ctx)
		require.ErrorIs(t, err, singleton.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, c.alive.count())
		host, took := c.found(c.node(1), 20*time.Second)
		require.Equal(t, "m001", host)
		require.InDelta(t, 4, took.Seconds(), 1.5)
	})
}

func TestClose_BeforeTheMemberIsUp(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("s")
		s, err := singleton.NewProxy(system, singleton.Config{Name: "x", Role: "r"})
		require.NoError(t, err)
		system.Root.Send(s.PID(), wrapperspb.String("kept"))
		asked := make(chan error, 1)
		go func() {
			_, err := s.Ask(context.Background(), wrapperspb.String("x"))
			asked <- err
		}()
		synctest.Wait()
		require.Empty(t, asked)
		require.NoError(t, s.Close(context.Background()))
		require.ErrorIs(t, <-asked, singleton.ErrClosed)
		require.EqualValues(t, 1, s.Stats().Refused, "what waits in Ask was not sent")
		system.Root.Send(s.PID(), wrapperspb.String("nobody is there"))
		_, err = s.Ask(context.Background(), wrapperspb.String("x"))
		require.ErrorIs(t, err, singleton.ErrClosed)
		require.NoError(t, s.Close(context.Background()))
	})
}

func TestShutdown_RunsTheHandOver(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		require.NoError(t, lifecycle.Of(c.Member(0).System).Start(context.Background()))
		require.NoError(t, lifecycle.Of(c.Member(0).System).Stop(context.Background(), nil))
		host, _ := c.found(c.node(1), time.Second)
		require.Equal(t, "m001", host)
		_, err := singleton.New(c.Member(0).System, c.node(0).session, singleton.Config{
			Name: "late"}, func(coordination.Tenure) actor.Actor {
			return nil
		})
		require.ErrorIs(t, err, lifecycle.ErrStopping)
	})
}

// A member whose session has been closed cannot host; the next oldest does.
func TestSession_ClosedTooEarlyLetsAnotherMemberHost(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.found(c.node(0), 20*time.Second)
		require.NoError(t, c.node(0).session.Close(context.Background()))
		time.Sleep(time.Second)
		host, _ := c.found(c.node(0), 5*time.Second)
		require.Equal(t, "m001", host)
		require.Equal(t, 1, c.alive.count())
	})
}

// header remembers the header of the message that it got.
type header struct {
	worker
	got map[string]string
}

func (h *header) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
		h.got["trace"] = ctx.MessageHeader().Get("trace")
		ctx.Respond(wrapperspb.Int64(1))
		return
	}
	h.worker.Receive(ctx)
}

func TestProxy_KeepsSenderAndHeader(t *testing.T) {
	got := map[string]string{}
	o := options{away: true, produce: func(_ *testCluster,
		n *node) func(coordination.Tenure) actor.Actor {
		return func(t coordination.Tenure) actor.Actor { return &header{worker{n, t}, got} }
	}}
	run(t, 2, o, func(c *testCluster) {
		answers := 0
		sys := c.Member(1).System
		me := sys.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*wrapperspb.Int64Value); ok {
				answers++
			}
		}))
		defer sys.Root.Stop(me)
		sys.Root.Send(c.node(1).single.PID(), &actor.MessageEnvelope{
			Header: map[string]string{"trace": "abc"}, Message: wrapperspb.Int64(7), Sender: me,
		})
		c.node(0).store.away(false)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, answers)
		require.Equal(t, "abc", got["trace"])
	})
}

// Wrong views that name each other as the oldest must not let a message circulate forever.
func TestHops_AreBounded(t *testing.T) {
	run(t, 2, options{away: true}, func(c *testCluster) {
		env := &actor.MessageEnvelope{Message: wrapperspb.String("x"), Header: map[string]string{
			"concord-singleton-hops": "3"}}
		c.Member(1).System.Root.Send(actor.NewPID(c.Member(1).Address, "concord-singleton-jobs"),
			env)
		time.Sleep(time.Second)
		require.EqualValues(t, 1, c.node(1).single.Stats().Refused)
	})
}

// A lossy network with wrong views, crashes and store outages: there are never two instances, and
// afterwards there is one for all members.
func TestSoak_NeverTwoInstances(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			run(t, 4, options{plain: seed%2 == 0}, func(c *testCluster) {
				rnd := rand.New(rand.NewPCG(seed, 3))
				pick := func() *simnetMember { l := c.Live(); return l[rnd.IntN(len(l))] }
				c.Net.SetAll(simnet.Faults{Loss: 0.05, Jitter: 50 * time.Millisecond})
				for range 60 {
					time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
					m := pick()
					switch rnd.IntN(6) {
					case 0:
						c.nodes[m].store.away(true)
					case 1:
						c.nodes[m].store.away(false)
					case 2:
						if len(c.Live()) > 2 {
							o := pick()
							c.Net.Cut(m.Address, o.Address)
						}
					case 3:
						c.Net.Heal()
						c.Net.SetAll(simnet.Faults{Loss: 0.05, Jitter: 50 * time.Millisecond})
					case 4:
						if rnd.IntN(3) == 0 {
							c.nodes[m].store.away(true)
							c.Restart(m)
						}
					case 5:
						c.Member(0).System.Root.Send(c.nodes[m].single.PID(),
							wrapperspb.String("panic"))
					}
				}
				c.Net.Heal()
				for _, m := range c.Live() {
					c.nodes[m].store.away(false)
				}
				time.Sleep(stale + 15*time.Second)
				synctest.Wait()
				require.Equal(t, 1, c.alive.count())
				for _, m := range c.Live() {
					c.found(c.nodes[m], time.Second)
				}
				t.Logf("%d instances", len(c.alive.starts))
			})
		})
	}
}

func TestConfig_EveryProblemAtOnce(t *testing.T) {
	err := settings.Check(singleton.Config{Name: "a/b", HandOver: -1, Buffer: -1})
	require.ErrorIs(t, err, singleton.ErrInvalid)
	for _, part := range []string{`"a/b"`, "HandOver is -1ns", "Buffer is -1"} {
		require.ErrorContains(t, err, part)
	}
	require.NoError(t, settings.Check(singleton.Config{Name: "jobs"}))
	require.Error(t, settings.Check(singleton.Config{Name: "proxy-jobs"}))
	require.Error(t, settings.Check(singleton.Config{}))

	system := simnet.NewSystem("s")
	_, err = singleton.New(system, nil, singleton.Config{}, nil)
	for _, part := range []string{"no session", "produce", "Name"} {
		require.ErrorContains(t, err, part)
	}
	_, err = singleton.New(nil, nil, singleton.Config{}, nil)
	require.ErrorIs(t, err, singleton.ErrInvalid)
	require.ErrorContains(t, err, "no actor system")
	_, err = singleton.NewProxy(nil, singleton.Config{Name: "jobs", Role: "none"})
	require.ErrorContains(t, err, "no actor system")
	_, err = singleton.NewProxy(system, singleton.Config{})
	require.ErrorIs(t, err, singleton.ErrInvalid)
}

func TestErrors_OfARefusalAreUndelivered(t *testing.T) {
	for _, err := range []error{singleton.ErrBufferFull} {
		require.ErrorIs(t, fmt.Errorf("wrapped: %w", err), singleton.ErrUndelivered)
		require.False(t, errors.Is(err, singleton.ErrUnknown))
	}
}

// An instance that must not continue has at most a second for the messages in its mailbox, however
// long Drain is.
func TestRemoval_TheInstanceHasASecond(t *testing.T) {
	run(t, 2, options{ttl: time.Minute}, func(c *testCluster) {
		c.found(c.node(0), 20*time.Second)
		for range 50 {
			c.Member(0).System.Root.Send(c.node(0).single.PID(), wrapperspb.String("nap")) // 100ms
		}
		c.Expel(c.Member(0))
		<-c.node(0).members().Removed()
		removed := time.Now()
		time.Sleep(5 * time.Second)
		c.alive.mu.Lock()
		defer c.alive.mu.Unlock()
		require.InDelta(t, 1.05, c.alive.ended.Sub(removed).Seconds(), 0.06,
			"a second, and a message")
	})
}
