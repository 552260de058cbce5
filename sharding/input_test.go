package sharding_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/testkit/remembertest"
)

func TestValidate_ReportsEveryProblemAtOnce(t *testing.T) {
	err := settings.Check(sharding.Config{
		Type: "a b", Shards: 5000, MinMembers: -1, MaxMoves: -2, Buffer: -1, BufferBytes: 5,
		Stash: -1, Settle: -1,
		HandOff: 2 * time.Hour, OrphanAfter: time.Microsecond, StableAfter: -1,
		Idle:  time.Millisecond,
		Limit: -1, Remember: true, RecoverRate: -1, Spread: 5001, External: true,
		Strategy: func(sharding.Layout) map[int]string {
			return nil
		},
		LeasePrefix: strings.Repeat("x", 201),
	})
	require.ErrorIs(t, err, sharding.ErrInvalid)
	for _, text := range []string{
		`Type "a b"`, "Shards is 5000, it must be from 1 to 4096", "MinMembers", "MaxMoves",
		"Buffer is", "BufferBytes", "Stash",
		"Settle", "HandOff is 2h0m0s, it must be from 1ms to 1h", "OrphanAfter", "StableAfter",
		"Idle is 1ms", "LeasePrefix is 201",
		"Spread is 5001, it must be from 1 to 5000",
		"Strategy chooses homes, so External and Rendezvous must not be set",
		"Limit is -1, it must be from 0", "RecoverRate is -1, it must be from 0 to 1000000",
		"Remember keeps entities running, so Idle (1ms) and Limit (-1) must be 0",
	} {
		require.ErrorContains(t, err, text)
	}
	require.ErrorContains(t, settings.Check(sharding.Config{Type: strings.Repeat("x", 41)}),
		"Type has 41 bytes")
	require.NoError(t, settings.Check(sharding.Config{Type: "cart"}))
	err = settings.Check(sharding.Config{Type: "cart", RecoverRate: 1,
		RememberStore: &remembertest.Memory{}})
	require.ErrorContains(t, err,
		"RecoverRate (1) and RememberStore (*remembertest.Memory) require Remember")
}

// A member that is up was said not to be, and the outcome was unknown half of the time.
func TestAsk_WithAnEndedContextSendsNothing(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		ended, end := context.WithCancel(context.Background())
		end()
		for range 20 {
			_, err := c.node(0).region.Ref("x").Ask(ended, wrapperspb.String("noted"))
			require.ErrorIs(t, err, context.Canceled)
			require.EqualError(t, err, "sharding: message not delivered: not sent: context canceled")
		}
		require.Empty(t, c.alive.notes("noted"))
	})
}

func TestNew_RefusesWhatCannotBe(t *testing.T) {
	produce := func(sharding.Entity) actor.Actor { return nil }
	_, err := sharding.New[message](nil, nil, nil, sharding.Config{}, nil)
	for _, text := range []string{"no session", "no produce function", "no actor system",
		"no replicator", "Type has 0 bytes"} {
		require.ErrorContains(t, err, text)
	}
	_, err = sharding.NewProxy[message](nil, nil, sharding.Config{Type: "cart"})
	require.ErrorContains(t, err, "no replicator")
	run(t, 1, options{setup: func(n *node) {
		_, err := sharding.New[message](n.System, n.session, n.data, config(0), produce)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "a region of this type already")
		cfg := sharding.Config{Type: "other", LeasePrefix: "shard-cart-"}
		_, err = sharding.New[message](n.System, n.session, n.data, cfg, produce)
		require.ErrorContains(t, err, `a type with LeasePrefix "shard-cart-" already`)
	}}, func(c *testCluster) {
		_, err := c.node(0).ask("x", "who", 10*time.Second)
		require.NoError(t, err)
		require.NoError(t, c.node(0).region.Close(context.Background()))
		_, err = sharding.New[message](c.node(0).System, c.node(0).session, c.node(0).data,
			sharding.Config{Type: "late"}, produce)
		require.NoError(t, err, "the member has not begun to stop")
		require.NoError(t, c.node(0).leave(20*time.Second))
		_, err = sharding.New[message](c.node(0).System, c.node(0).session, c.node(0).data,
			sharding.Config{Type: "later"}, produce)
		require.ErrorContains(t, err, "stopping")
	})
}

// plainStore hides the session records of a store.
type plainStore struct{ coordination.Store }

func TestNew_RefusesManyShardsWhereEachLeaseIsRenewed(t *testing.T) {
	produce := func(sharding.Entity) actor.Actor { return nil }
	session, err := coordination.Open(plainStore{memory.New()}, coordination.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close(t.Context())) }()
	_, err = sharding.New[message](nil, session, nil, sharding.Config{Type: "cart", Shards: 65},
		produce)
	require.ErrorIs(t, err, sharding.ErrInvalid)
	require.ErrorContains(t, err,
		"Shards is 65, it must be at most 64 with a lease store that keeps no session records")
	for _, cfg := range []sharding.Config{{Type: "cart", Shards: 64},
		{Type: "cart", Shards: 65, RenewEachLease: true}} {
		_, err = sharding.New[message](nil, session, nil, cfg, produce)
		require.NotContains(t, err.Error(), "session records")
	}
}

// A message that would stop an actor does not stop a region.
func TestPID_CannotBeStopped(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for _, n := range c.all() {
			pid := n.region.PID()
			for _, from := range c.all() {
				from.System.Root.Stop(pid)
				from.System.Root.Poison(pid)
				from.System.Root.Send(pid, &actor.PoisonPill{})
				from.System.Root.Send(pid, wrapperspb.String("no envelope"))
			}
			require.Equal(t, pid, n.region.PID())
		}
		time.Sleep(time.Second)
		for k := range 20 {
			for _, n := range c.all() {
				_, err := n.ask(fmt.Sprint("e", k), "who", time.Second)
				require.NoError(t, err)
			}
		}
	})
}

// An entity whose handler outlasts HandOff keeps its shard. The observer checks that no other
// member has the shard meanwhile.
func TestHandOff_AHandlerThatDoesNotReturnKeepsItsShard(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 1, HandOff: time.Second}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		host, other := c.node(0), c.node(1)
		if host.region.Status().Count(sharding.Active) == 0 {
			host, other = other, host
		}
		other.tell("x", "sleep") // for five seconds
		other.tell("x", "waits")
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		require.NoError(t, host.region.Close(context.Background()))
		home, err := other.ask("x", "who", 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, other.ID, home)
		require.Greater(t, time.Since(begun), 4*time.Second)
		require.Empty(t, c.alive.notes("x "), "what waited longer than HandOff is lost")
		require.Positive(t, host.region.Stats().Refused, "and counted")
	})
}

func TestSend_RefusesIdsAndMessagesThatCannotBe(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		n := c.node(0)
		for id, text := range map[string]string{
			"": "has 0 bytes", strings.Repeat("x", 513): "has 513 bytes",
			"a\nb": "control characters", "a\xff": "not UTF-8",
		} {
			err := n.region.Ref(id).Tell(wrapperspb.String("x"))
			require.ErrorIs(t, err, sharding.ErrInvalid)
			require.ErrorContains(t, err, text)
			_, err = n.ask(id, "who", time.Second)
			require.ErrorContains(t, err, text)
		}
		require.ErrorContains(t, n.region.Ref("x").Tell(nil), "no message")
		require.ErrorContains(t, n.region.Ref("x").Tell((*wrapperspb.StringValue)(nil)),
			"no message: a nil *wrapperspb.StringValue")
		dead := deadLetters(n.System)
		n.System.Root.Send(n.region.PID(), wrapperspb.String("without an envelope"))
		n.System.Root.Send(n.region.PID(), &sharding.Envelope{ID: "x"})
		n.System.Root.Send(n.region.PID(), (*sharding.Envelope)(nil))
		n.System.Root.Send(n.region.PID(), &sharding.Envelope{
			ID: "x", Message: &actor.PoisonPill{}})
		n.System.Root.Send(n.region.PID(), &sharding.Envelope{Message: wrapperspb.String("no id")})
		n.System.Root.Stop(n.region.PID()) // it cannot be stopped
		n.System.Root.Poison(n.region.PID())
		require.EqualValues(t, 6, dead.Load())
		home, err := n.ask(strings.Repeat("x", 512), "who", 10*time.Second)
		require.NoError(t, err)
		require.Equal(t, "m000", home)
	})
}

func deadLetters(s *actor.ActorSystem) *atomic.Int64 {
	var n atomic.Int64
	s.EventStream.Subscribe(func(ev any) {
		if _, ok := ev.(*actor.DeadLetterEvent); ok {
			n.Add(1)
		}
	})
	return &n
}

// Large messages reach an entity at another member as those at this one do, whole and in the order
// in which they were sent.
func TestTell_LargeMessagesArriveInOrder(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]int{}
	produce := func(*node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					mu.Lock()
					got[e.ID] = append(got[e.ID], len(m.Value))
					mu.Unlock()
					ctx.Respond(m)
				}
			})
		}
	}
	run(t, 2, options{produce: produce}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		ids := map[string]string{} // by home
		for k := 0; len(ids) < 2; k++ {
			id := fmt.Sprint("e", k)
			home, _ := c.homeOf(id)
			ids[home.ID] = id
		}
		sizes := []int{1, 300 << 10, 2, 3_999_990, 3, 250 << 10, 1 << 20, 4}
		for _, id := range ids {
			for _, n := range sizes {
				require.NoError(t, c.node(0).region.Ref(id).Tell(
					wrapperspb.String(strings.Repeat("x", n))))
			}
			large := strings.Repeat("x", 1<<20)
			res, err := sharding.As[*wrapperspb.StringValue](c.node(0).region.Ref(id).Ask(
				context.Background(), wrapperspb.String(large)))
			require.NoError(t, err)
			require.Equal(t, large, res.Value)
			require.NoError(t, c.node(0).region.Ref(id).Deliver(context.Background(),
				wrapperspb.String(large)))
			mu.Lock()
			require.Equal(t, append(slices.Clip(sizes), 1<<20, 1<<20), got[id])
			mu.Unlock()
		}
	})
}

// pair returns the ids of entities on members 0 and 1.
func pair(c *testCluster) (here, there string) {
	for k := 0; here == "" || there == ""; k++ {
		id := fmt.Sprint("e", k)
		home, err := c.node(0).ask(id, "who", time.Minute)
		require.NoError(c.t, err)
		if home == "m000" {
			here = id
		} else {
			there = id
		}
	}
	return here, there
}

// A produce that fails is called again after a pause, with the messages that have waited. After
// eight failures these messages are returned.
func TestProduce_ThatFailsIsTriedAgain(t *testing.T) {
	for name, fail := range map[string]func(){
		"panics": func() {
			panic("as asked")
		}, "returns nil": func() {}, "ends its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var calls, bad atomic.Int64
			bad.Store(2)
			produce := func(n *node) func(sharding.Entity) actor.Actor {
				return func(e sharding.Entity) actor.Actor {
					if calls.Add(1) <= bad.Load() {
						fail()
						return nil
					}
					return &entity{node: n, Entity: e}
				}
			}
			run(t, 1, options{produce: produce}, func(c *testCluster) {
				home, err := c.node(0).ask("x", "who", 20*time.Second)
				require.NoError(t, err)
				require.Equal(t, "m000", home)
				bad.Store(1 << 40)
				_, err = c.node(0).ask("y", "who", 10*time.Minute)
				require.ErrorIs(t, err, sharding.ErrUndelivered)
				_, err = c.node(0).ask("x", "who", time.Second)
				require.NoError(t, err, "others are not hurt")
			})
		})
	}
}

// A handler that fails is restarted, and the messages behind the failed one are handled.
func TestReceive_ThatFailsIsRestarted(t *testing.T) {
	for name, fail := range map[string]func(){"panics": func() {
		panic("as asked")
	}, "ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			produce := func(n *node) func(sharding.Entity) actor.Actor {
				return func(sharding.Entity) actor.Actor {
					return actor.ReceiveFunc(func(ctx actor.Context) {
						switch m := ctx.Message().(type) {
						case *actor.Stopping, *actor.Stopped, *actor.Restarting:
							fail()
						case *wrapperspb.StringValue:
							if m.Value == "fail" {
								fail()
							}
							n.c.alive.note("x", m.Value)
						}
					})
				}
			}
			run(t, 1, options{produce: produce}, func(c *testCluster) {
				n := c.node(0)
				for k := range 40 { // more than Proto.Actor restarts
					if k%2 == 0 {
						n.tell("x", "fail")
					}
					n.tell("x", fmt.Sprint(k))
				}
				time.Sleep(time.Minute)
				require.Equal(t, texts("", 40), n.c.alive.notes("x "))
				require.NoError(t, n.leave(20*time.Second), "an end that fails is an end")
			})
		})
	}
}

// Members with different settings ignore each other, and one that starts later does not become
// ready.
func TestSettings_ThatDifferAreRefused(t *testing.T) {
	for name, other := range map[string]struct {
		change func(*sharding.Config)
		text   string
	}{
		"another number of shards": {func(c *sharding.Config) {
			c.Shards = 17
		}, "17 shards by fnv1a64"},
		"another role": {func(c *sharding.Config) { c.Role = "shop" }, `role "shop"`},
		"other names of leases": {func(c *sharding.Config) {
			c.LeasePrefix = "own-"
		}, `leases "own-"`},
		"remembered entities": {func(c *sharding.Config) { c.Remember = true }, "remembered"},
		"remembered elsewhere": {func(c *sharding.Config) {
			c.Remember, c.RememberStore = true, &remembertest.Memory{}
		}, "remembered in a store"},
		"another way to homes": {func(c *sharding.Config) {
			c.Rendezvous = true
		}, "by rendezvous"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := func(i int) sharding.Config {
				c := sharding.Config{Type: "cart", Shards: 16}
				if i == 2 {
					other.change(&c)
				}
				return c
			}
			roles := func(int) []string { return []string{"shop"} }
			run(t, 2, options{cfg: cfg, roles: roles}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				m := c.Join()
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
				defer cancel()
				err := start(ctx, c.nodes[m])
				require.ErrorIs(t, err, sharding.ErrInvalid)
				require.ErrorContains(t, err, "the cluster has 16 shards by fnv1a64")
				require.ErrorContains(t, err, "this member has ")
				require.ErrorContains(t, err, other.text)
				time.Sleep(20 * time.Second)
				c.settled(time.Second, c.node(0), c.node(1))
			})
		})
	}
}

// Three members start at once, one of them with another number of shards: that one does not become
// ready, whichever it is, and the others serve. Of two, the older one stays.
func TestSettings_MostMembersDecideAtAColdStart(t *testing.T) {
	for _, members := range []int{2, 3} {
		for odd := range members {
			t.Run(fmt.Sprint(odd, " of ", members), func(t *testing.T) {
				cfg := func(i int) sharding.Config {
					c := sharding.Config{Type: "cart", Shards: 16}
					if i == odd {
						c.Shards = 17
					}
					return c
				}
				run(t, members, options{cfg: cfg}, func(c *testCluster) {
					var ready []*node
					for _, n := range c.all() {
						if n.ready == nil {
							ready = append(ready, n)
							continue
						}
						require.ErrorIs(t, n.ready, sharding.ErrInvalid)
						require.NoError(t, n.leave(20*time.Second))
						c.Leave(n.Member)
					}
					require.Len(t, ready, max(1, members-1))
					if members == 3 {
						require.NotContains(t, ready, c.nodes[c.Member(odd)])
					}
					time.Sleep(stale + 20*time.Second)
					active := 0
					for _, n := range ready {
						active += n.region.Status().Count(sharding.Active)
					}
					require.Len(t, ready[0].region.Status().Shards, active)
				})
			})
		}
	}
}

// The first member to start does not decide on the settings: it waits until all members that it
// sees have announced theirs, but not for ever.
func TestSettings_WaitForAnnouncements(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		cfg := sharding.Config{Type: "another", Shards: 17}
		for _, test := range []struct {
			missing    int
			late, done bool
		}{{1, false, false}, {1, true, true}, {0, false, true}} {
			done, err := sharding.Agreed(t.Context(), c.node(0).data, cfg, test.missing, test.late)
			require.NoError(t, err)
			require.Equal(t, test.done, done, "%+v", test)
		}
	})
}

func TestBuffer_IsBounded(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, Buffer: 80}
	}
	run(t, 1, options{cfg: cfg}, func(c *testCluster) {
		n := c.node(0)
		n.store.away(true)
		time.Sleep(30 * time.Second) // no shard is active any more
		dead := deadLetters(n.System)
		full := 0
		for k := range 200 {
			if err := n.region.Ref("x").Tell(wrapperspb.String(fmt.Sprint(k))); err != nil {
				require.ErrorIs(t, err, sharding.ErrBufferFull)
				full++
			}
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 190, full+int(dead.Load()),
			"an eighth of the buffer is for one shard")
		_, err := n.ask("x", "who", time.Second)
		require.ErrorIs(t, err, sharding.ErrBufferFull)
		n.store.away(false)
		time.Sleep(stale + 20*time.Second)
		require.Equal(t, texts("", 10), c.alive.notes("x "), "the oldest are kept")
	})
}

func TestAsk_SaysWhatIsKnown(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		n := c.node(0)
		n.store.away(true)
		_, err := n.ask("x", "who", time.Second)
		require.ErrorIs(t, err, sharding.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		n.store.away(false)
		_, err = n.ask("x", "sleep", 30*time.Second)
		require.ErrorIs(t, err, sharding.ErrUnknown)
		require.NoError(t, n.region.Close(context.Background()))
		require.NoError(t, n.region.Close(context.Background()), "twice")
		_, err = n.ask("x", "who", time.Second)
		require.ErrorIs(t, err, sharding.ErrClosed)
		require.ErrorIs(t, n.region.Ref("x").Tell(wrapperspb.String("x")), sharding.ErrClosed)
		require.Empty(t, n.region.Status().Shards)
	})
}

func TestErrors_AreTold(t *testing.T) {
	for _, err := range []error{sharding.ErrBufferFull} {
		require.ErrorIs(t, fmt.Errorf("wrapped: %w", err), sharding.ErrUndelivered)
		require.False(t, errors.Is(err, sharding.ErrUnknown))
	}
}

// The names of leases are checked by the rule of package coordination before anything runs.
func TestConfig_NamesOfLeases(t *testing.T) {
	for _, prefix := range []string{"concord.session.x-", "a\xff"} {
		err := settings.Check(sharding.Config{Type: "a", LeasePrefix: prefix})
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "LeasePrefix: coordination: invalid argument: lease")
	}
}

// The leases of two types have different names, whatever their prefixes are: shard 0 of a type with
// the prefix "shard-cart-1" would have the lease of shard 10 of carts.
func TestConfig_NoLeaseHasTwoTypes(t *testing.T) {
	err := settings.Check(sharding.Config{Type: "a", LeasePrefix: "shard-cart-1"})
	require.ErrorIs(t, err, sharding.ErrInvalid)
	require.ErrorContains(t, err, `LeasePrefix "shard-cart-1" ends with a digit`)
	require.NoError(t, settings.Check(sharding.Config{Type: "a", LeasePrefix: "shard-1-cart"}))
	require.NoError(t, settings.Check(sharding.Config{Type: "cart1"}))
}

// An entity that stops itself at each start gets its messages again after a pause. After eight
// starts without a handled message they are returned. Others are not hurt.
func TestReceive_ThatStopsItselfAtEachStart(t *testing.T) {
	var starts, bad atomic.Int64
	bad.Store(3)
	produce := func(n *node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			usual := &entity{node: n, Entity: e}
			return actor.ReceiveFunc(func(ctx actor.Context) {
				usual.Receive(ctx)
				if _, ok := ctx.Message().(*actor.Started); ok && e.ID != "other" &&
					starts.Add(1) <= bad.Load() {
					ctx.Stop(ctx.Self())
				}
			})
		}
	}
	run(t, 1, options{produce: produce}, func(c *testCluster) {
		n := c.node(0)
		for k := range 5 {
			n.tell("x", fmt.Sprint(k))
		}
		_, err := n.ask("x", "who", 20*time.Second)
		require.NoError(t, err)
		require.Equal(t, texts("", 5), c.alive.notes("x "), "nothing is lost")
		require.EqualValues(t, 4, starts.Load())
		bad.Store(1 << 40)
		_, err = n.ask("y", "who", 10*time.Minute)
		require.ErrorIs(t, err, sharding.ErrUndelivered)
		require.EqualValues(t, 12, starts.Load())
		require.EqualValues(t, 1, n.region.Stats().Refused)
		for _, id := range []string{"x", "other"} {
			_, err = n.ask(id, "who", time.Second)
			require.NoError(t, err, id)
		}
	})
}
