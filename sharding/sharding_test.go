package sharding_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/sharding"
)

func TestRegion_EntitiesLiveOnceAndAnswerEveryMember(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for k := range 30 {
			id := fmt.Sprint("e", k)
			home, err := c.node(0).ask(id, "who", 20*time.Second)
			require.NoError(t, err)
			for i := range 3 {
				again, err := c.node(i).ask(id, "who", time.Second)
				require.NoError(t, err)
				require.Equal(t, home, again)
			}
		}
		require.Equal(t, 30, c.alive.count())
		require.Equal(t, 30, c.alive.starts)
		c.settled(time.Second, c.all()...)
		for _, n := range c.all() {
			require.NotZero(t, n.region.Status().Count(sharding.Active), "%v has shards", n)
		}
	})
}

func TestRegion_MessagesArriveOnceAndInOrder(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		const n = 200
		for k := range n { // the first before any shard has a home
			for i := range 3 {
				for e := range 4 {
					c.node(i).tell(fmt.Sprint("e", e), fmt.Sprint("m", i, " ", k))
				}
			}
			time.Sleep(30 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for i := range 3 {
			for e := range 4 {
				require.Equal(t, texts("", n), c.alive.notes(fmt.Sprint("e", e, " m", i, " ")))
			}
		}
	})
}

// A member leaves under load: no message is lost or reordered.
func TestClose_HandsOverWithoutLoss(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		const n = 1000
		closed := make(chan error, 1)
		for k := range n {
			if k == n/2 {
				go func() { closed <- c.node(0).leave(20 * time.Second) }()
			}
			for i := range 3 {
				if i > 0 || k < n/2 {
					c.node(i).tell(fmt.Sprint("e", k%20), fmt.Sprint("m", i, " ", k/20))
				}
			}
			time.Sleep(2 * time.Millisecond)
		}
		require.NoError(t, <-closed)
		c.Leave(c.Member(0))
		time.Sleep(time.Second)
		took := c.settled(5*time.Second, c.node(1), c.node(2))
		for i := range 3 {
			for e := range 20 {
				count := n / 20
				if i == 0 {
					count /= 2
				}
				require.Equal(t, texts("", count), c.alive.notes(fmt.Sprint("e", e, " m", i, " ")),
					"entity %d, member %d", e, i)
			}
		}
		require.Zero(t, c.node(1).region.Stats().Refused+c.node(2).region.Stats().Refused)
		t.Log("settled after", took)
	})
}

func TestCrash_ShardsComeBack(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 20 {
			_, err := c.node(1).ask(fmt.Sprint("e", k), "who", time.Second)
			require.NoError(t, err)
		}
		c.crash(c.node(0))
		took := c.settled(stale+5*time.Second, c.node(1), c.node(2))
		t.Log("all shards are served again after", took)
		for k := range 20 {
			home, err := c.node(1).ask(fmt.Sprint("e", k), "who", time.Second)
			require.NoError(t, err)
			require.NotEqual(t, "m000", home)
		}
	})
}

// The last members stop at once, while a member that has stopped or crashed is still listed: they
// do not wait for it until the deadline.
func TestClose_TheLastTwoAtOnce(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(map[bool]string{false: "after a member that left",
			true: "after a member that crashed"}[crash], func(t *testing.T) {
			run(t, 3, options{}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				for k := range 20 {
					_, err := c.node(0).ask(fmt.Sprint("e", k), "who", time.Second)
					require.NoError(t, err)
				}
				first, last := c.node(0), []*node{c.node(1), c.node(2)}
				if crash {
					// not the coordinator, which only a member replaces that the provider lists
					// as the oldest
					first, last = c.node(2), []*node{c.node(0), c.node(1)}
					c.alive.forget(first)
					c.Crash(first.Member)
					first.store.away(true)
				} else {
					require.NoError(t, first.leave(20*time.Second))
				}
				errs := make(chan error, 2)
				for _, n := range last {
					go func() {
						// other components may fail, where no majority is left
						_ = n.leave(20 * time.Second)
						errs <- n.region.Close(context.Background()) // the result of the first call
					}()
				}
				require.NoError(t, <-errs)
				require.NoError(t, <-errs)
			})
		})
	}
}

// Three members stop within two seconds of each other, and each is listed for a while after its
// end. Each has as long for its shards as ten seconds leave it, if all components have a part.
func TestClose_AllTogether(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, MinMembers: 3}
	}
	for seed := range 40 {
		run(t, 3, options{cfg: cfg}, func(c *testCluster) {
			c.settled(20*time.Second, c.all()...)
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			span := func(most time.Duration) time.Duration {
				return time.Duration(r.Int64N(int64(most)))
			}
			spread := []time.Duration{1, 50 * time.Millisecond, time.Second / 2,
				2 * time.Second}[seed%4]
			for k := range 20 {
				_, err := c.node(k%3).ask(fmt.Sprint("e", k), "who", time.Second)
				require.NoError(t, err)
			}
			var wg sync.WaitGroup
			for _, n := range c.all() {
				begin, listed := span(spread), span(3*time.Second)
				wg.Go(func() {
					time.Sleep(begin)
					// three phases and the end: sharding, the coordinator, the replicator; the last
					// member finds nobody that it could give its updates
					_ = n.leave(4 * closeWithin)
					err := n.region.Close(context.Background()) // the result of the first call
					assert.NoError(t, err, "seed %d, %v", seed, n)
					time.Sleep(listed)
					c.Leave(n.Member)
				})
			}
			wg.Wait()
		})
	}
}

// closeWithin is a sixth of the default of node.RunConfig.StopTimeout.
const closeWithin = 10 * time.Second / 6

// Messages sent to an entity while it is passivated, or after it stopped itself, go to its next
// incarnation.
func TestPassivate_LosesNothing(t *testing.T) {
	for _, how := range []string{"passivate", "stop"} {
		t.Run(how, func(t *testing.T) {
			run(t, 2, options{}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				n := c.node(0)
				for k := range 100 {
					n.tell("x", how)
					n.tell("x", fmt.Sprint(k))
					if k%5 == 4 {
						// else all are in the mailbox before the first is handled
						time.Sleep(time.Duration(k/5) * 100 * time.Microsecond)
					}
				}
				time.Sleep(20 * time.Second)
				require.Equal(t, texts("", 100), c.alive.notes("x "))
				require.Greater(t, c.alive.starts, 1)
			})
		})
	}
}

func TestIdle_EntitiesArePassivated(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, Idle: time.Minute}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		for k := range 20 {
			_, err := c.node(0).ask(fmt.Sprint("e", k), "who", 20*time.Second)
			require.NoError(t, err)
		}
		for range 9 {
			time.Sleep(20 * time.Second)
			_, err := c.node(1).ask("e3", "who", time.Second)
			require.NoError(t, err)
		}
		require.Equal(t, 1, c.alive.count())
		require.Equal(t, 20, c.alive.starts)
		require.Equal(t, 1, c.node(0).region.Status().Entities()+c.node(
			1).region.Status().Entities())
	})
}

// Eight of thirty entities may run on one member; the others are passivated and lose no messages.
func TestLimit_TooManyArePassivated(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 4, Limit: 8}
	}
	run(t, 1, options{cfg: cfg}, func(c *testCluster) {
		n := c.node(0)
		c.settled(20*time.Second, n)
		time.Sleep(2 * time.Second)
		for round := range 5 {
			for k := range 30 {
				n.tell(fmt.Sprint("e", k), fmt.Sprint(round))
			}
		}
		time.Sleep(100 * time.Millisecond)
		require.LessOrEqual(t, c.alive.count(), 8)
		require.Positive(t, c.alive.count())
		for k := range 30 {
			require.Equal(t, texts("", 5), c.alive.notes(fmt.Sprint("e", k, " ")))
		}
		s := n.region.Stats()
		require.GreaterOrEqual(t, s.Passivated, uint64(22))
		require.Equal(t, uint64(c.alive.starts), s.Started)
		require.Zero(t, s.Refused)
	})
}

func TestSelf_TellsWhoHandles(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		self, err := c.node(1).ask("x", "self", 20*time.Second)
		require.NoError(t, err)
		hash := fnv.New64a()
		_, _ = hash.Write([]byte("x"))
		require.Equal(t, fmt.Sprintf("cart x %d true true", hash.Sum64()%16), self)
		c.alive.mu.Lock()
		e := c.alive.live["x"]
		c.alive.mu.Unlock()
		tenure, ok := coordination.FromContext(e.Context())
		require.True(t, ok)
		require.Equal(t, e.Token(), tenure.Token())
	})
}

// A proxy hosts no entities and reaches all of them.
func TestProxy_ReachesEntities(t *testing.T) {
	o := options{
		cfg: func(int) sharding.Config {
			return sharding.Config{Type: "cart", Shards: 16, Role: "backend"}
		},
		roles:   func(i int) []string { return map[bool][]string{true: {"backend"}}[i < 2] },
		proxies: func(i int) bool { return i == 2 },
	}
	run(t, 3, o, func(c *testCluster) {
		for k := range 10 {
			home, err := c.node(2).ask(fmt.Sprint("e", k), "who", 20*time.Second)
			require.NoError(t, err)
			require.NotEqual(t, "m002", home)
		}
		require.Zero(t, c.node(2).region.Status().Count(sharding.Active))
		for k := range 400 {
			if k == 100 {
				go func() { _ = c.node(0).leave(20 * time.Second) }()
			}
			c.node(2).tell(fmt.Sprint("e", k%10), fmt.Sprint(k/10))
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		for k := range 10 {
			require.Equal(t, texts("", 40), c.alive.notes(fmt.Sprint("e", k, " ")),
				"a proxy flushes too")
		}
	})
}

// A member joins: shards move to it, a few at a time, and no message is lost.
func TestJoin_MovesShardsForBalance(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		m := c.Join()
		require.NoError(t, start(context.Background(), c.nodes[m]))
		for k := range 3000 {
			c.node(k%3).tell(fmt.Sprint("e", k%7), fmt.Sprint("m", k%3, " ", k/21))
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		require.Equal(t, 5, c.node(2).region.Status().Count(sharding.Active))
		for e := range 7 {
			for i := range 3 {
				got := c.alive.notes(fmt.Sprint("e", e, " m", i, " "))
				require.Equal(t, texts("", len(got)), got)
				require.InDelta(t, 3000/21, len(got), 1)
			}
		}
	})
}

// With Rendezvous every member finds every entity, and only the shards of a leaving member move.
func TestRendezvous_OnlyShardsOfALeavingMemberMove(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 64, Rendezvous: true, MinMembers: 3}
	}
	run(t, 3, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		before := c.node(0).region.Status()
		require.Len(t, before.Homes(), 3)
		require.NoError(t, c.node(2).leave(20*time.Second))
		c.settled(20*time.Second, c.node(0), c.node(1))
		for n, s := range c.node(0).region.Status().Shards {
			if was := before.Shards[n].Home; was != c.node(2).ID {
				require.Equal(t, was, s.Home)
			}
		}
		for k := range 20 {
			_, err := c.node(k%2).ask(fmt.Sprint("e", k), "who", time.Second)
			require.NoError(t, err)
		}
	})
}

// A host that loses its lease stops its entities at once, and gets the shards back when the store
// is back.
func TestLoss_EntitiesStopAndComeBack(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 10 {
			_, err := c.node(0).ask(fmt.Sprint("e", k), "who", time.Second)
			require.NoError(t, err)
		}
		c.node(0).store.away(true)
		c.node(1).store.away(true)
		time.Sleep(ttl + time.Second)
		require.Zero(t, c.alive.count())
		homes := c.node(0).region.Status()
		c.node(0).store.away(false)
		c.node(1).store.away(false)
		took := c.settled(stale+10*time.Second, c.all()...)
		t.Log("all active again after", took)
		for i, s := range c.node(0).region.Status().Shards {
			require.Equal(t, homes.Shards[i].Home, s.Home, "a lost lease is no lost home")
		}
	})
}

// A member that has never reached the store, or may not write, hosts nothing until it does.
func TestLoss_AMemberWithoutTheStoreFromTheStart(t *testing.T) {
	for name, fault := range map[string]func(*faultyStore, bool){
		"away": (*faultyStore).away, "refuses": func(f *faultyStore, on bool) { f.refuses.Store(on) },
	} {
		t.Run(name, func(t *testing.T) {
			o := options{setup: func(n *node) { fault(n.store, n.Index == 2) }}
			run(t, 3, o, func(c *testCluster) {
				c.settled(ttl, c.node(0), c.node(1))
				fault(c.node(2).store, false)
				c.settled(2*ttl, c.all()...)
				require.Eventually(t, func() bool {
					return len(c.node(0).region.Status().Homes()) == 3
				}, time.Minute, time.Second)
			})
		})
	}
}

// With Rendezvous and equal Shards, shards of two types with the same number are on the same
// member, also after members have come and gone.
func TestRendezvous_ShardsOfTwoTypesAreTogether(t *testing.T) {
	cfg := func(typ string) sharding.Config {
		return sharding.Config{Type: typ, Shards: 32, Rendezvous: true, MinMembers: 2,
			MaxMoves: 32, StableAfter: time.Second}
	}
	wishes := map[*node]*sharding.Region[message]{}
	o := options{cfg: func(int) sharding.Config { return cfg("cart") }, setup: func(n *node) {
		r, err := sharding.New[message](n.System, n.session, n.data, cfg("wish"),
			func(e sharding.Entity) actor.Actor { return &entity{node: n, Entity: e} })
		require.NoError(n.c.t, err)
		wishes[n] = r
	}}
	run(t, 2, o, func(c *testCluster) {
		together := func(members int) {
			for _, n := range c.all() {
				carts, wished := n.region.Status(), wishes[n].Status()
				require.Len(t, carts.Homes(), members)
				for s := range carts.Shards {
					require.Equal(t, carts.Shards[s].Home, wished.Shards[s].Home)
					require.Equal(t, carts.Shards[s].State, wished.Shards[s].State)
				}
			}
		}
		c.settled(20*time.Second, c.all()...)
		time.Sleep(10 * time.Second)
		together(2)
		m := c.Join()
		require.NoError(t, start(context.Background(), c.nodes[m]))
		time.Sleep(time.Minute)
		together(3)
		require.NoError(t, c.node(0).leave(20*time.Second))
		c.Leave(c.Member(0))
		time.Sleep(time.Minute)
		together(2)
	})
}

// The first message of a fresh cluster waits for the coordinator and for one report of each member,
// and for no heartbeat. Without MinMembers the coordinator first waits for Settle.
func TestStart_TheFirstAskWaitsForTheCoordinatorOnly(t *testing.T) {
	for name, c := range map[string]struct {
		members, least int
		within         time.Duration
	}{
		"one member, MinMembers":    {1, 1, 100 * time.Millisecond},
		"one member":                {1, 0, 2*time.Second + 100*time.Millisecond},
		"three members, MinMembers": {3, 3, 2*time.Second + 400*time.Millisecond},
		"three members":             {3, 0, 2*time.Second + 400*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := func(i int) sharding.Config {
				cfg := config(i)
				cfg.MinMembers = c.least
				return cfg
			}
			began := time.Time{}
			setup := func(*node) { began = time.Now() }
			run(t, c.members, options{cfg: cfg, setup: setup}, func(cl *testCluster) {
				_, err := cl.node(0).ask("e", "who", 10*time.Second)
				require.NoError(t, err)
				t.Log(time.Since(began))
				require.LessOrEqual(t, time.Since(began), c.within)
			})
		})
	}
}

// A region ends while its member stays, and then the coordinator does. The next one does not wait
// for that region, although it never heard from it.
func TestClose_TheNextCoordinatorKnows(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, Settle: 30 * time.Second}
	}
	run(t, 4, options{cfg: cfg}, func(c *testCluster) {
		c.settled(time.Minute, c.all()...)
		require.NoError(t, c.node(2).region.Close(context.Background()))
		c.settled(20*time.Second, c.node(0), c.node(1), c.node(3))
		first, left := c.node(0), []*node{c.node(1), c.node(3)}
		c.alive.forget(first)
		c.crash(first)
		took := c.settled(10*time.Minute, left...)
		require.Less(t, took, 30*time.Second, "it waited for a report")
	})
}
