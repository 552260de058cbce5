package sharding_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
)

// The scenarios of Akka's ClusterShardingLeaseSpec and ShardWithLeaseSpec: a shard does not start
// while another has its lease, or while its store fails, and tries again. It stops when its lease
// is lost, and releases it when it stops (TestLoss_…, TestClose_…).

// stranger opens a session that is no member's, and acquires leases of shards.
func (c *testCluster) stranger(shards ...int) (release func()) {
	c.t.Helper()
	session, err := coordination.Open(c.store, coordination.Config{Owner: "stranger", TTL: ttl})
	require.NoError(c.t, err)
	for _, n := range shards {
		g, err := session.Lease(fmt.Sprint("shard-cart-", n)).TryAcquire(context.Background())
		require.NoError(c.t, err)
		context.AfterFunc(g.Context(), func() { _ = g.Release(context.Background()) })
	}
	return func() { require.NoError(c.t, session.Close(context.Background())) }
}

// The leases of two shards are held by another. Their state shows that, their messages wait where
// they were sent, and are handled when the leases are free. Others are not held up.
func TestLease_AShardWhoseLeaseAnotherHoldsWaits(t *testing.T) {
	var release func()
	run(t, 2, options{setup: func(n *node) {
		if n.Index == 0 {
			release = n.c.stranger(3, 4)
		}
	}}, func(c *testCluster) {
		time.Sleep(20 * time.Second)
		ids := map[int]string{}
		for k := 0; len(ids) < 3; k++ {
			ref := c.node(0).region.Ref(fmt.Sprint("e", k))
			if s := ref.Shard(); s >= 3 && s <= 5 {
				ids[s] = ref.ID()
			}
		}
		states := func(shard int) (out []sharding.State) {
			for _, n := range c.all() {
				out = append(out, n.region.Status().Shards[shard].State)
			}
			return out
		}
		for _, id := range ids {
			c.node(0).tell(id, "first")
			c.node(0).tell(id, "second")
		}
		time.Sleep(time.Second)
		for _, s := range []int{3, 4} {
			want := []sharding.State{sharding.Stashing, sharding.AwaitingLease}
			if states(s)[0] == sharding.AwaitingLease {
				want = []sharding.State{sharding.AwaitingLease, sharding.Elsewhere}
			}
			require.Equal(t, want, states(s))
			require.Empty(t, c.alive.notes(ids[s]+" "))
			require.Equal(t, 2, c.node(0).region.Status().Shards[s].Waiting)
		}
		require.ElementsMatch(t, []sharding.State{sharding.Elsewhere, sharding.Active}, states(5))
		require.Equal(t, []string{"first", "second"}, c.alive.notes(ids[5]+" "))

		// A shard that waits for its lease is handed off at once.
		begun := time.Now()
		require.NoError(t, c.node(1).leave(20*time.Second))
		require.Less(t, time.Since(begun), 5*time.Second)
		release()
		c.settled(20*time.Second, c.node(0))
		time.Sleep(time.Second)
		for _, s := range []int{3, 4} {
			require.Equal(t, []string{"first", "second"}, c.alive.notes(ids[s]+" "))
		}
	})
}

// The store fails at the start, for longer than members retry once: the log does not have a line
// for every attempt of every shard. Then all shards are served.
func TestLease_AStoreThatFailsIsTriedAgain(t *testing.T) {
	const text = "lease of a shard not acquired"
	var log child.Screen
	run(t, 1, options{log: slog.NewTextHandler(&log, nil)}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		n := c.node(0)
		n.store.away(true)
		time.Sleep(2 * time.Minute)
		require.Zero(t, n.region.Status().Count(sharding.Active))
		require.NotEmpty(t, log.With(text))
		require.Less(t, len(log.With(text)), 20, "16 shards have tried every second")
		n.store.away(false)
		c.settled(20*time.Second, n)
		home, err := n.ask("x", "who", time.Second)
		require.NoError(t, err)
		require.Equal(t, n.ID, home)
	})
}

// Akka 27487, 29680, 30604; Akka.NET 6973, 7196, 7297, 7298, 7302: a process restarts fast on the
// same address, and two members run its shards. Here the new process is another member: it waits
// for the lease of its predecessor. The observer checks that nothing is alive twice.
func TestScenario_ARestartOnTheSameAddressIsNotTheHome(t *testing.T) {
	for _, listed := range []bool{false, true} {
		t.Run(fmt.Sprint("both are listed: ", listed), func(t *testing.T) {
			run(t, 3, options{}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				for k := range 40 {
					_, err := c.node(1).ask(fmt.Sprint("e", k), "who", time.Second)
					require.NoError(t, err)
				}
				old := c.node(2)
				renewed := time.Now()
				old.store.away(true) // a process that has ended renews nothing
				var m *simnet.Member
				if listed {
					m = c.RestartBeside(old.Member)
				} else {
					m = c.Restart(old.Member)
				}
				next := c.nodes[m]
				require.NoError(t, start(context.Background(), next))
				for k := range 40 {
					_, _ = next.ask(fmt.Sprint("e", k), "who", 200*time.Millisecond)
				}
				require.Less(t, time.Since(renewed), ttl)
				if listed {
					time.Sleep(2 * time.Second)
					c.Unlist(c.Live(), []*simnet.Member{old.Member})
				}
				c.alive.mu.Lock()
				for id, e := range c.alive.live {
					if e.node == old { // it lives until its lease has ended
						require.NoError(t, e.Check(), id)
					}
				}
				c.alive.mu.Unlock()
				took := c.settled(stale+10*time.Second, c.node(0), c.node(1), next)
				t.Log("all shards are served after", took)
				for k := range 40 {
					home, err := next.ask(fmt.Sprint("e", k), "who", time.Second)
					require.NoError(t, err)
					require.NotEqual(t, old.ID, home)
				}
			})
		})
	}
}

// Two halves of a cluster, each with a majority of nothing, believe that they are all that is left,
// and all reach the store. The half with the coordinator serves everything; no entity lives twice.
func TestScenario_BothHalvesOfASplitRunEachEntityOnce(t *testing.T) {
	run(t, 4, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		near, far := []*node{c.node(0), c.node(1)}, []*node{c.node(2), c.node(3)}
		members := func(nodes []*node) (out []*simnet.Member, at []string) {
			for _, n := range nodes {
				out, at = append(out, n.Member), append(at, n.Address)
			}
			return out, at
		}
		nm, na := members(near)
		fm, fa := members(far)
		c.Net.Partition(na, fa)
		c.Unlist(nm, fm)
		c.Unlist(fm, nm)
		begun := time.Now()
		for k := 0; time.Since(begun) < time.Minute; k++ {
			for _, n := range c.all() {
				go func() { _, _ = n.ask(fmt.Sprint("e", k%40), "who", 100*time.Millisecond) }()
			}
			time.Sleep(50 * time.Millisecond)
		}
		c.settled(time.Second, near...)
		for _, n := range far {
			require.Zero(t, n.region.Status().Count(sharding.Active))
			_, err := n.ask("e1", "who", time.Second)
			require.ErrorIs(t, err, sharding.ErrUnknown)
		}
		for k := range 40 {
			_, err := near[k%2].ask(fmt.Sprint("e", k), "who", time.Second)
			require.NoError(t, err)
		}
	})
}

// With a store that keeps no session records, each lease is renewed for itself: shards are served,
// move without loss, and come back after a crash. Nobody has observed their leases before that.
func TestPlainStore_ShardsMoveAndComeBack(t *testing.T) {
	run(t, 3, options{plain: true}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 300 {
			if k == 100 {
				go func() { _ = c.node(2).leave(20 * time.Second) }()
			}
			c.node(k%2).tell(fmt.Sprint("e", k%10), fmt.Sprint("m", k%2, " ", k/10))
			time.Sleep(5 * time.Millisecond)
		}
		c.settled(20*time.Second, c.node(0), c.node(1))
		time.Sleep(time.Second)
		for e := range 10 {
			got := c.alive.notes(fmt.Sprintf("e%d m%d ", e, e%2))
			require.Equal(t, texts("", 30), got)
		}
		time.Sleep(2 * ttl)
		c.settled(0, c.node(0), c.node(1))
		c.alive.forget(c.node(0))
		c.crash(c.node(0))
		took := c.settled(4*stale, c.node(1))
		t.Log("all shards are served again after", took)
		for k := range 20 {
			home, err := c.node(1).ask(fmt.Sprint("e", k), "who", time.Second)
			require.NoError(t, err)
			require.Equal(t, c.node(1).ID, home)
		}
	})
}
