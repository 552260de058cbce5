package sharding_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/testkit"
	"github.com/concord-go/concord/testkit/remembertest"
)

func storing(s sharding.RememberStore) func(int) sharding.Config {
	return func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, Remember: true, RememberStore: s,
			HandOff: 2 * time.Second}
	}
}

// Entities whose ids are in a store live on when their member leaves or dies, also if no majority
// of the replicas is left. No replicated data has their ids.
func TestRememberStore_EntitiesLiveOn(t *testing.T) {
	for _, how := range []string{"leave", "crash"} {
		t.Run(how, func(t *testing.T) {
			run(t, 3, options{cfg: storing(&remembertest.Memory{})}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				for k := range 40 {
					_, err := c.node(1).ask(fmt.Sprint("e", k), "who", 3*time.Second)
					require.NoError(t, err)
				}
				for k := range 5 {
					c.node(1).tell(fmt.Sprint("e", k), "forget")
				}
				time.Sleep(time.Second)
				for i := range 2 {
					if how == "leave" {
						require.NoError(t, c.node(i).leave(20*time.Second))
					} else {
						c.alive.forget(c.node(i))
						c.crash(c.node(i))
					}
				}
				last := c.node(2)
				c.settled(2*stale+5*time.Second, last)
				time.Sleep(time.Second)
				require.Equal(t, 35, c.alive.count())
				require.Len(t, last.region.Entities(100), 35)
				for key := range last.data.Keys() {
					require.NotContains(t, key, "/entities-")
				}
			})
		})
	}
}

// unruly is a store that misbehaves as often as it is told to.
type unruly struct {
	remembertest.Memory
	fail  func()
	left  atomic.Int64 // calls that fail
	calls atomic.Int64
	also  []string // returned by Load, too
}

func (u *unruly) misbehave() error {
	u.calls.Add(1)
	if u.left.Add(-1) < 0 {
		return nil
	}
	u.fail()
	return errors.New("as asked")
}

func (u *unruly) Load(ctx context.Context, of sharding.ShardTenure) ([]string, error) {
	if err := u.misbehave(); err != nil {
		return nil, err
	}
	ids, err := u.Memory.Load(ctx, of)
	return append(ids, u.also...), err
}

func (u *unruly) Change(ctx context.Context, of sharding.ShardTenure, add, remove []string) error {
	if err := u.misbehave(); err != nil {
		return err
	}
	return u.Memory.Change(ctx, of, add, remove)
}

// late is a store whose first removal ends with an error, and takes effect five seconds later.
type late struct {
	remembertest.Memory
	removed atomic.Bool
	landed  chan error // created in the bubble; the result of the late call
}

func (l *late) Change(ctx context.Context, of sharding.ShardTenure, add, remove []string) error {
	if len(remove) == 0 || l.removed.Swap(true) {
		return l.Memory.Change(ctx, of, add, remove)
	}
	<-ctx.Done()
	add, remove = slices.Clone(add), slices.Clone(remove)
	go func() {
		time.Sleep(5 * time.Second)
		l.landed <- l.Memory.Change(context.Background(), of, add, remove)
	}()
	return context.Cause(ctx)
}

// A removal that timed out takes effect five seconds later, in the same tenure, after the entity
// was added again: the entity is remembered.
func TestRememberStore_LateRemovalLosesNoEntity(t *testing.T) {
	l := &late{}
	run(t, 2, options{cfg: storing(l), setup: func(n *node) {
		if n.Index == 0 {
			l.landed = make(chan error, 1)
		}
	}}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		_, err := c.node(0).ask("returns", "who", 3*time.Second)
		require.NoError(t, err)
		c.node(0).tell("returns", "forget")
		time.Sleep(time.Second)
		require.Zero(t, c.alive.count())
		host, err := c.node(0).ask("returns", "who", 10*time.Second)
		require.NoError(t, err)
		require.ErrorIs(t, <-l.landed, fence.ErrStale, "a younger call has added the entity")
		for i := range 2 {
			if n := c.node(i); n.ID == host {
				c.alive.forget(n)
				c.crash(n)
				c.settled(stale+5*time.Second, c.node(1-i))
				time.Sleep(time.Second)
				require.Equal(t, c.node(1-i), c.alive.host("returns"), "it runs without a message")
			}
		}
	})
}

// A store that fails is called again, and messages wait meanwhile.
func TestRememberStore_ThatFailsIsCalledAgain(t *testing.T) {
	for name, fail := range map[string]func(){
		"returns an error":   func() {},
		"panics":             func() { panic("as asked") },
		"ends its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			u := &unruly{fail: fail}
			u.left.Store(40)
			run(t, 1, options{cfg: storing(u)}, func(c *testCluster) {
				n := c.node(0)
				for k := range 20 {
					n.tell(fmt.Sprint("e", k), "first")
				}
				require.Eventually(t, func() bool { return u.left.Load() < 0 }, time.Minute,
					time.Millisecond)
				time.Sleep(time.Second)
				u.left.Store(5)
				_, err := n.ask("new", "who", 20*time.Second)
				require.NoError(t, err)
				for k := range 20 {
					require.Equal(t, []string{"first"}, c.alive.notes(fmt.Sprint("e", k, " ")))
				}
				require.Equal(t, 21, c.alive.count())
			})
		})
	}
}

// A store that does not return delays the entities that it was called for, and neither others nor a
// move. In the move, the messages that wait are lost after HandOff, and counted.
func TestRememberStore_ThatDoesNotReturnHoldsUpNoMove(t *testing.T) {
	var block chan struct{} // created in the bubble
	u := &unruly{}
	u.fail = func() { <-block }
	run(t, 2, options{cfg: storing(u), setup: func(n *node) {
		if n.Index == 0 {
			block = make(chan struct{})
		}
	}}, func(c *testCluster) {
		defer func() { close(block) }()
		c.settled(20*time.Second, c.all()...)
		here, _ := pair(c)
		u.left.Store(1)
		c.node(0).tell("waits-"+here, "x")
		require.Eventually(t, func() bool { return u.left.Load() < 1 }, time.Minute,
			time.Millisecond)
		_, err := c.node(0).ask(here, "who", time.Second)
		require.NoError(t, err, "what is remembered goes on")
		refused := c.node(0).region.Stats().Refused + c.node(1).region.Stats().Refused
		shard := c.node(0).region.Ref("waits-" + here).Shard()
		for i := range 2 {
			if c.node(i).region.Status().Shards[shard].State == sharding.Active {
				require.NoError(t, c.node(i).leave(20*time.Second))
				c.settled(20*time.Second, c.node(1-i))
				require.Equal(t, refused+1, c.node(0).region.Stats().Refused+
					c.node(1).region.Stats().Refused)
				_, err = c.node(1-i).ask("waits-"+here, "who", 3*time.Second)
				require.NoError(t, err)
				return
			}
		}
		t.Fatal("no member has the shard")
	})
}

// Ids from the store that no entity of the shard can have are ignored: an entity would be alive in
// two shards.
func TestRememberStore_ReturnsIdsThatCannotBe(t *testing.T) {
	u := &unruly{also: []string{"", "e1", "e2", "e1", "a\nb", "a\xff", strings.Repeat("x", 513)}}
	run(t, 2, options{cfg: storing(u)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		time.Sleep(time.Second)
		require.Equal(t, 2, c.alive.count())
		ids := append(c.node(0).region.Entities(100), c.node(1).region.Entities(100)...)
		slices.Sort(ids)
		require.Equal(t, []string{"e1", "e2"}, ids)
		for _, id := range ids {
			_, err := c.node(0).ask(id, "who", time.Second)
			require.NoError(t, err)
		}
		require.Equal(t, 2, c.alive.starts)
	})
}

// A member that takes over remembered entities starts twenty in a second, of all shards together.
// Messages start an entity at once.
func TestRecoverRate_EntitiesStartAtARate(t *testing.T) {
	cfg := storing(&remembertest.Memory{})
	paced := func(i int) sharding.Config {
		c := cfg(i)
		c.RecoverRate = 20
		return c
	}
	run(t, 2, options{cfg: paced}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 100 {
			_, err := c.node(0).ask(fmt.Sprint("e", k), "who", 3*time.Second)
			require.NoError(t, err, "a new entity does not wait")
		}
		gone, last := c.node(0), c.node(1)
		own := len(last.region.Entities(1000))
		c.alive.forget(gone)
		c.crash(gone)
		crashed := time.Now()
		c.settled(2*stale, last)
		for k := range 100 {
			_, err := last.ask(fmt.Sprint("e", k), "who", 50*time.Millisecond)
			require.NoError(t, err, "a message does not wait")
			if k == 10 {
				break
			}
		}
		had := len(last.region.Entities(1000))
		require.Less(t, had, own+30)
		for {
			time.Sleep(100 * time.Millisecond)
			has := len(last.region.Entities(1000))
			require.LessOrEqual(t, has-had, 4, "two turns may fall into a tenth of a second")
			if had = has; has == 100 {
				break
			}
			require.Less(t, time.Since(crashed), 10*time.Minute)
		}
		require.Equal(t, 100, c.alive.count())
	})
}

// rememberedOnDisks returns the configuration of members whose remembered entities are durable, on
// a disk for each address, which loses its power between two processes.
func rememberedOnDisks() func(*simnet.Member) distributeddata.Config {
	var mu sync.Mutex
	disks := map[string]*testkit.Disk{} // by address
	return func(m *simnet.Member) distributeddata.Config {
		mu.Lock()
		defer mu.Unlock()
		if disks[m.Address] == nil {
			disks[m.Address] = testkit.NewDisk(1)
		} else {
			disks[m.Address].Crash()
		}
		s, err := disks[m.Address].Open("ddata")
		if err != nil {
			panic(err)
		}
		return distributeddata.Config{Durable: []string{sharding.RememberedKeys("cart")},
			Store: s}
	}
}

// With RememberedKeys among the durable keys, the entities are remembered although all members
// crash at once.
func TestRememberedKeys_OutliveAllMembers(t *testing.T) {
	on := options{cfg: remembering, majority: true, data: rememberedOnDisks()}
	run(t, 3, on, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 30 {
			_, err := c.node(k%3).ask(fmt.Sprint("e", k), "who", 3*time.Second)
			require.NoError(t, err)
		}
		first := c.all()
		for _, n := range first {
			c.alive.forget(n)
			c.Crash(n.Member)
			n.store.away(true)
		}
		var again []*simnet.Member
		for _, n := range first {
			again = append(again, c.Start(n.Address))
		}
		c.List(again, again)
		c.start()
		c.settled(2*stale+20*time.Second, c.all()...)
		time.Sleep(time.Second)
		require.Equal(t, 30, c.alive.count())
	})
}

// The whole cluster stops, and starts with another number of shards: every entity is remembered.
// One that is forgotten then stays so, also with the first number again.
func TestRemember_SurvivesAnotherNumberOfShards(t *testing.T) {
	shards := 12
	cfg := func(int) sharding.Config {
		c := remembering(0)
		c.Shards = shards
		return c
	}
	run(t, 3, options{cfg: cfg, majority: true, data: rememberedOnDisks()}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 100 {
			_, err := c.node(k%3).ask(fmt.Sprint("e", k), "who", 3*time.Second)
			require.NoError(t, err)
		}
		want := 100
		for _, shards = range []int{10, 37, 12} {
			for _, n := range c.all() {
				c.alive.forget(n)
				c.Crash(n.Member)
				n.store.away(true)
			}
			// Each entity gets the lease of another shard.
			c.alive.last = map[string]coordination.Token{}
			var again []*simnet.Member
			for i := range 3 {
				again = append(again, c.Start(c.Member(i).Address))
			}
			c.List(again, again)
			c.start()
			c.settled(2*stale+20*time.Second, c.all()...)
			time.Sleep(5 * time.Second)
			require.Equal(t, want, c.alive.count(), "with %d shards", shards)
			c.all()[0].tell(fmt.Sprint("e", shards), "forget")
			time.Sleep(5 * time.Second)
			want--
		}
	})
}

// reached is a store as one member reaches it.
type reached struct {
	*remembertest.Memory
	away atomic.Bool
}

func (r *reached) Load(ctx context.Context, of sharding.ShardTenure) ([]string, error) {
	if r.away.Load() {
		return nil, errAway
	}
	return r.Memory.Load(ctx, of)
}

func (r *reached) Change(ctx context.Context, of sharding.ShardTenure, add, remove []string) error {
	if r.away.Load() {
		return errAway
	}
	return r.Memory.Change(ctx, of, add, remove)
}

// reachedByEach returns a store as each of n members reaches it, and a configuration with it.
func reachedByEach(n int) (stores []*reached, cfg func(int) sharding.Config) {
	shared := &remembertest.Memory{}
	for range n {
		stores = append(stores, &reached{Memory: shared})
	}
	return stores, func(i int) sharding.Config { return storing(stores[i])(i) }
}

// S41: a member that does not reach the store gives its shards to members that do. When it reaches
// the store, it gets shards again. Messages that wait for the store do not hold up the move.
func TestRememberStore_AMemberThatDoesNotReachItLosesItsShards(t *testing.T) {
	stores, cfg := reachedByEach(3)
	var log bytes.Buffer
	o := options{log: slog.NewTextHandler(&log, nil), cfg: func(i int) sharding.Config {
		c := cfg(i)
		c.HandOff = time.Minute
		return c
	}}
	run(t, 3, o, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		out := c.node(2)
		askAll := func(n int) {
			for k := range n {
				_, err := c.node(0).ask(fmt.Sprint("e", k), "who", 3*time.Second)
				require.NoError(t, err)
			}
			require.Equal(t, n, c.alive.count())
		}
		askAll(40)
		stores[2].away.Store(true)
		for k := range 80 {
			out.tell(fmt.Sprint("e", k), "x")
		}
		time.Sleep(30 * time.Second)
		askAll(80)
		require.Empty(t, out.region.Entities(100))
		require.True(t, out.region.Status().StoreFails)
		require.False(t, c.node(0).region.Status().StoreFails)
		for range 60 { // it is given a shard from time to time
			time.Sleep(time.Minute)
			require.GreaterOrEqual(t, c.alive.count(), 70)
			require.LessOrEqual(t, out.region.Status().Count(sharding.Active), 1)
		}
		stores[2].away.Store(false)
		time.Sleep(12 * time.Minute)
		askAll(80)
		require.Equal(t, 5, out.region.Status().Count(sharding.Active))
		require.Equal(t, 1, strings.Count(log.String(), "fails at this member"))
		require.Equal(t, 1, strings.Count(log.String(), "works again at this member"))
	})
}

// S41: while no member reaches the store, shards stay, and entities that run do so.
func TestRememberStore_AnOutageForAllMovesNoShard(t *testing.T) {
	for busy, moves := range map[string]int{
		"all members": 0,
		// The others are given a shard each, since they may reach the store.
		"one member": 2,
	} {
		t.Run("called by "+busy, func(t *testing.T) {
			stores, cfg := reachedByEach(3)
			run(t, 3, options{cfg: cfg}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				for k := range 40 {
					_, err := c.node(0).ask(fmt.Sprint("e", k), "who", 3*time.Second)
					require.NoError(t, err)
				}
				starts, last := c.alive.starts, c.node(2)
				for _, s := range stores {
					s.away.Store(true)
				}
				had := last.region.Status()
				for k := range 40 {
					ref := last.region.Ref(fmt.Sprint("new", k))
					if moves == 0 || had.Shards[ref.Shard()].State == sharding.Active {
						last.tell(ref.ID(), "x")
					}
				}
				others := len(c.node(0).region.Entities(100)) + len(c.node(1).region.Entities(100))
				for range 30 {
					time.Sleep(time.Minute)
					require.Equal(t, had.Count(sharding.Active)-moves,
						last.region.Status().Count(sharding.Active))
					require.Equal(t, others, len(c.node(0).region.Entities(100))+
						len(c.node(1).region.Entities(100)))
				}
				require.Equal(t, starts, c.alive.starts)
				for _, s := range stores {
					s.away.Store(false)
				}
				time.Sleep(30 * time.Second)
				require.Greater(t, c.alive.count(), 40)
			})
		})
	}
}

// damaged is a store with a shard that cannot be read or changed.
type damaged struct {
	remembertest.Memory
	shard atomic.Int64
}

func (d *damaged) Load(ctx context.Context, of sharding.ShardTenure) ([]string, error) {
	if int64(of.Shard) == d.shard.Load() {
		return nil, errAway
	}
	return d.Memory.Load(ctx, of)
}

func (d *damaged) Change(ctx context.Context, of sharding.ShardTenure, add, rem []string) error {
	if int64(of.Shard) == d.shard.Load() {
		return errAway
	}
	return d.Memory.Change(ctx, of, add, rem)
}

// S41: a shard that alone cannot be read or changed moves no shard.
func TestRememberStore_ADamagedShardMovesNone(t *testing.T) {
	bad := &damaged{}
	bad.shard.Store(-1)
	run(t, 2, options{cfg: storing(bad)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 40 {
			_, err := c.node(0).ask(fmt.Sprint("e", k), "who", 3*time.Second)
			require.NoError(t, err)
		}
		starts := c.alive.starts
		bad.shard.Store(int64(c.node(0).region.Ref("new").Shard()))
		c.node(0).tell("new", "x")
		time.Sleep(20 * time.Minute)
		require.Equal(t, starts, c.alive.starts)
		require.Equal(t, 40, c.alive.count())
	})
}

// slowly is a store in which one shard is damaged, and additions to others take a second while it
// is slow.
type slowly struct {
	damaged
	slow   atomic.Bool
	adding atomic.Bool // while it is slow
}

func (s *slowly) Change(ctx context.Context, of sharding.ShardTenure, add, rem []string) error {
	if s.slow.Load() && len(add) > 0 && int64(of.Shard) != s.shard.Load() {
		s.adding.Store(true)
		time.Sleep(time.Second)
	}
	return s.damaged.Change(ctx, of, add, rem)
}

// S41: an entity that is stored again, to see whether the store works, asks to be forgotten
// meanwhile. Its next message stores it before it starts.
func TestRememberStore_AnEntityForgottenWhileItIsStoredAgain(t *testing.T) {
	s := &slowly{}
	s.shard.Store(-1)
	run(t, 1, options{cfg: storing(s)}, func(c *testCluster) {
		n := c.node(0)
		c.settled(20*time.Second, n)
		_, err := n.ask("e", "who", 3*time.Second)
		require.NoError(t, err)
		s.slow.Store(true)
		s.shard.Store(int64(n.region.Ref("bad").Shard()))
		require.NotEqual(t, n.region.Ref("e").Shard(), n.region.Ref("bad").Shard())
		n.tell("bad", "x")
		require.Eventually(t, s.adding.Load, time.Minute, time.Millisecond)
		n.tell("e", "forget")
		time.Sleep(10 * time.Second)
		require.Zero(t, c.alive.count())
		n.tell("e", "again")
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"again"}, c.alive.notes("e "))
		ids, err := s.Memory.Load(t.Context(), sharding.ShardTenure{Type: "cart",
			Shard: n.region.Ref("e").Shard(), Token: 1 << 40})
		require.NoError(t, err)
		require.Equal(t, []string{"e"}, ids)
	})
}
