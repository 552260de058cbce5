package sharding_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// The tests of this file are of sentences in the comments of exported names.

// Only messages from a region keep an entity from being idle, not those to its own PID.
func TestIdle_MessagesToThePIDDoNotCount(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 4, Idle: time.Minute}
	}
	run(t, 1, options{cfg: cfg, produce: ticking}, func(c *testCluster) {
		_, err := c.node(0).ask("x", "who", 20*time.Second)
		require.NoError(t, err)
		time.Sleep(50 * time.Second)
		require.Equal(t, 1, c.alive.count())
		time.Sleep(11 * time.Second)
		require.Zero(t, c.alive.count())
	})
}

// ticking creates entities that send themselves a message every second.
func ticking(n *node) func(sharding.Entity) actor.Actor {
	return func(e sharding.Entity) actor.Actor {
		usual := &entity{node: n, Entity: e}
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started, *wrapperspb.BoolValue:
				self := ctx.Self()
				time.AfterFunc(time.Second, func() {
					if e.Check() == nil && n.c.alive.host(e.ID) != nil {
						n.System.Root.Send(self, wrapperspb.Bool(true))
					}
				})
			}
			usual.Receive(ctx)
		})
	}
}

// Each shard of a member may have one entity, also if Limit is lower than the number of shards.
func TestLimit_EachShardHasOne(t *testing.T) {
	cfg := func(int) sharding.Config { return sharding.Config{Type: "cart", Shards: 8, Limit: 3} }
	run(t, 1, options{cfg: cfg}, func(c *testCluster) {
		n := c.node(0)
		c.settled(20*time.Second, n)
		time.Sleep(2 * time.Second)
		for k := range 200 {
			n.tell(fmt.Sprint("e", k), "note")
		}
		time.Sleep(time.Second)
		require.Equal(t, 8, c.alive.count())
		require.Zero(t, n.region.Stats().Refused)
	})
}

// A function that creates an entity may take its time: messages to the entity wait, and others do
// not.
func TestProduce_ThatTakesItsTimeDelaysNoOther(t *testing.T) {
	produce := func(n *node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			if e.ID == "slow" {
				time.Sleep(5 * time.Second)
			}
			return &entity{node: n, Entity: e}
		}
	}
	cfg := func(int) sharding.Config { return sharding.Config{Type: "cart", Shards: 1} }
	run(t, 1, options{produce: produce, cfg: cfg}, func(c *testCluster) {
		n := c.node(0)
		c.settled(20*time.Second, n)
		for k := range 3 {
			n.tell("slow", fmt.Sprint(k))
		}
		time.Sleep(time.Millisecond)
		begun := time.Now()
		_, err := n.ask("other", "who", time.Second)
		require.NoError(t, err)
		require.Less(t, time.Since(begun), 10*time.Millisecond)
		_, err = n.ask("slow", "who", 10*time.Second)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begun), 4*time.Second)
		require.Equal(t, texts("", 3), c.alive.notes("slow "))
	})
}

// With MinMembers no shard is assigned before so many members with the role are seen.
func TestMinMembers_NoShardBefore(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Role: "shop", Shards: 8, MinMembers: 3}
	}
	roles := func(i int) []string {
		if i == 2 {
			return nil
		}
		return []string{"shop"}
	}
	run(t, 3, options{cfg: cfg, roles: roles}, func(c *testCluster) {
		time.Sleep(time.Minute)
		for _, n := range c.all() {
			require.Zero(t, n.region.Status().Count(sharding.Active))
		}
		m := c.Join()
		_ = start(context.Background(), c.nodes[m])
		c.settled(5*time.Second, c.all()...)
	})
}

// A member joins: no shard moves before the members have been unchanged for StableAfter, then at
// most MaxMoves at a time; with -1, none.
func TestMaxMoves_BoundsMovesForBalance(t *testing.T) {
	for most, least := range map[int]int{-1: 0, 1: 1, 3: 2} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			const stable = 7 * time.Second
			cfg := func(int) sharding.Config {
				return sharding.Config{Type: "cart", Shards: 16, MaxMoves: most, External: true,
					StableAfter: stable}
			}
			run(t, 2, options{cfg: cfg}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				homes := func() (ids []string) {
					for _, s := range c.node(0).region.Status().Shards {
						ids = append(ids, s.Home)
					}
					return ids
				}
				before, joined := homes(), time.Now()
				m := c.Join()
				require.NoError(t, start(context.Background(), c.nodes[m]))
				largest := 0
				for time.Since(joined) < 20*time.Second {
					time.Sleep(5 * time.Millisecond)
					active := 0
					for _, n := range c.all() {
						active += n.region.Status().Count(sharding.Active)
					}
					largest = max(largest, 16-active)
					if time.Since(joined) < stable {
						require.Equal(t, before, homes())
					}
				}
				require.LessOrEqual(t, largest, max(0, most))
				require.GreaterOrEqual(t, largest, least)
				if most < 0 {
					require.Equal(t, before, homes())
					require.False(t, c.node(0).region.Status().Movable)
				} else {
					require.Equal(t, 5, c.nodes[m].region.Status().Count(sharding.Active))
				}
			})
		})
	}
}

// Strategy is called when the members that can host change, and every five seconds. While it does
// not return, shards without a home wait one second for it.
func TestStrategy_WhenItIsCalled(t *testing.T) {
	var mu sync.Mutex
	var calls []time.Time
	strategy := func(sharding.Layout) map[int]string {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, time.Now())
		return nil
	}
	since := func(at time.Time) (out []time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range calls {
			if !c.Before(at) {
				out = append(out, c.Sub(at))
			}
		}
		return out
	}
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 8, Strategy: strategy, MinMembers: 2}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		time.Sleep(20 * time.Second)
		begun := time.Now()
		time.Sleep(20 * time.Second)
		require.InDelta(t, 4, len(since(begun)), 1)
		begun = time.Now()
		m := c.Join()
		require.NoError(t, start(context.Background(), c.nodes[m]))
		time.Sleep(time.Second)
		require.NotEmpty(t, since(begun), "a member has joined")
	})
	var block chan struct{} // created in the bubble
	blocked := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 8, MinMembers: 1,
			Strategy: func(sharding.Layout) map[int]string { <-block; return nil }}
	}
	run(t, 1, options{cfg: blocked, setup: func(*node) { block = make(chan struct{}) }},
		func(c *testCluster) {
			defer close(block)
			begun := time.Now()
			_, err := c.node(0).ask("x", "who", 10*time.Second)
			require.NoError(t, err)
			require.InDelta(t, 1, time.Since(begun).Seconds(), 0.2)
		})
}

// BufferBytes bounds what waits, encoded. One shard may use an eighth, so a larger message never
// waits.
func TestBufferBytes_BoundsWhatWaits(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, BufferBytes: 1 << 20}
	}
	run(t, 1, options{cfg: cfg}, func(c *testCluster) {
		n := c.node(0)
		n.store.away(true)
		time.Sleep(30 * time.Second) // no shard is active any more
		text := wrapperspb.String(strings.Repeat("x", 10_000))
		fit := 0
		for before := n.region.Stats().Refused; fit < 2000; fit++ {
			err := n.region.Ref("x").Tell(text)
			time.Sleep(time.Millisecond)
			if err != nil || n.region.Stats().Refused > before {
				break
			}
		}
		require.Equal(t, 128<<10/10_004, fit)
		id := "y"
		for k := 0; n.region.Ref(id).Shard() == n.region.Ref("x").Shard(); k++ {
			id = fmt.Sprint("y", k)
		}
		large := wrapperspb.String(strings.Repeat("x", 128<<10))
		_, err := n.region.Ref(id).Ask(short(c.t), large)
		require.ErrorIs(t, err, sharding.ErrBufferFull)
		require.ErrorIs(t, n.region.Ref(id).Deliver(short(c.t), large), sharding.ErrBufferFull)
		n.store.away(false)
	})
}

// The host of an entity crashes while it handles a delivery. The message is sent again as soon as
// the shard is active elsewhere, and not at the next of its growing intervals.
func TestDeliver_ResendsWhenTheShardIsActiveElsewhere(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		sender, id := c.node(0), ""
		for k := 0; id == ""; k++ {
			ref := sender.region.Ref(fmt.Sprint("e", k))
			if sender.region.Status().Shards[ref.Shard()].Home == c.node(2).ID {
				id = ref.ID()
			}
		}
		c.alive.forget(c.node(2))
		c.crash(c.node(2))
		done := make(chan time.Time, 1)
		go func() {
			assert.NoError(t, sender.deliver(id, "note", time.Minute))
			done <- time.Now()
		}()
		shard := sender.region.Ref(id).Shard()
		for {
			time.Sleep(10 * time.Millisecond)
			if c.node(0).region.Status().Shards[shard].State == sharding.Active ||
				c.node(1).region.Status().Shards[shard].State == sharding.Active {
				break
			}
		}
		active := time.Now()
		require.Less(t, (<-done).Sub(active), 100*time.Millisecond)
	})
}

// Entities returns ids by shard.
func TestEntities_AreOrderedByShard(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		n := c.node(0)
		for k := range 100 {
			_, err := n.ask(fmt.Sprint("e", k), "who", 20*time.Second)
			require.NoError(t, err)
		}
		ids := n.region.Entities(1000)
		require.Len(t, ids, 100)
		require.True(t, slices.IsSortedFunc(ids, func(a, b string) int {
			return n.region.Ref(a).Shard() - n.region.Ref(b).Shard()
		}))
	})
}

// What is called with the context of an actor that is no entity says so.
func TestSelf_AnActorThatIsNoEntity(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		n := c.node(0)
		stranger := n.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if ctx.Message() == "ask" {
				_, self := sharding.Self(ctx)
				_, delivery := sharding.DeliveryOf(ctx)
				ctx.Respond([]bool{self, delivery, sharding.Passivate(ctx), sharding.Forget(ctx)})
			}
		}))
		defer n.System.Root.Stop(stranger)
		res, err := n.System.Root.RequestFuture(stranger, "ask", time.Second).Result()
		require.NoError(t, err)
		require.Equal(t, []bool{false, false, false, false}, res)
	})
}

// The first event of a shard says that it was Elsewhere, and no event names the state Stashing.
func TestShardChanged_TheFirstAndStashing(t *testing.T) {
	var mu sync.Mutex
	first, stashing := map[int]sharding.State{}, 0
	o := options{setup: func(n *node) {
		n.System.EventStream.Subscribe(func(ev any) {
			e, ok := ev.(*sharding.ShardChanged)
			if !ok || n.Index != 1 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if _, had := first[e.Shard]; !had {
				first[e.Shard] = e.Was
			}
			if e.Was == sharding.Stashing || e.State == sharding.Stashing {
				stashing++
			}
		})
		for k := range 50 {
			n.tell(fmt.Sprint("e", k), "note") // waits: the state is Stashing
		}
	}}
	run(t, 2, o, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		require.NoError(t, c.node(0).leave(20*time.Second))
		c.settled(20*time.Second, c.node(1))
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, first, 16)
		for shard, was := range first {
			require.Equal(t, sharding.Elsewhere, was, shard)
		}
		require.Zero(t, stashing)
	})
}

// One member does not reach the store, which answers the others: they take its shards over.
func TestLoss_TheStoreAnswersOthers(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 30 {
			_, err := c.node(0).ask(fmt.Sprint("e", k), "who", time.Second)
			require.NoError(t, err)
		}
		for i := range 3 { // the first has the coordinator
			c.node(i).store.away(true)
			rest := []*node{c.node((i + 1) % 3), c.node((i + 2) % 3)}
			took := c.settled(2*stale+20*time.Second, rest...)
			t.Log("served after", took)
			for k := range 30 {
				_, err := c.node(i).ask(fmt.Sprint("e", k), "who", time.Second)
				require.NoError(t, err)
			}
			c.node(i).store.away(false)
			c.settled(2*stale+20*time.Second, c.all()...)
			time.Sleep(time.Minute)
		}
	})
}

// A member that is removed from its cluster releases its leases: the others serve its shards before
// the leases would have expired.
func TestRemoved_ReleasesItsLeases(t *testing.T) {
	run(t, 3, options{ttl: time.Minute}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		c.Expel(c.node(2).Member)
		took := c.settled(2*time.Minute, c.node(0), c.node(1))
		require.Less(t, took, 10*time.Second)
	})
}

// Stash messages wait for an entity that is being stopped. Of further ones each is refused once: it
// becomes a dead letter, or Ask returns an error at once, from every member.
func TestStash_IsBounded(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 4, Stash: 5,
			StopMessage: wrapperspb.String("ignored")}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		home, other := c.homeOf("x")
		home.tell("x", "passivate")
		time.Sleep(10 * time.Millisecond)
		for k := range 5 {
			home.tell("x", fmt.Sprint(k))
		}
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, 5, home.region.Status().Shards[home.region.Ref("x").Shard()].Held)
		for _, n := range []*node{home, other} {
			dead, refused := deadLetters(home.System), home.region.Stats().Refused
			begun := time.Now()
			_, err := n.ask("x", "asked", 5*time.Second)
			require.ErrorIs(t, err, sharding.ErrUndelivered, n)
			require.Less(t, time.Since(begun), 100*time.Millisecond)
			n.tell("x", "told")
			time.Sleep(100 * time.Millisecond)
			require.Equal(t, refused+2, home.region.Stats().Refused)
			require.LessOrEqual(t, dead.Load(), int64(2))
		}
		time.Sleep(10 * time.Second)
		require.Equal(t, append([]string{"ignored"}, texts("", 5)...), c.alive.notes("x "))
	})
}
