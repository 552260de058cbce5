package sharding_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

const workers = 6

func daemonConfig(int) sharding.Config {
	return sharding.Config{Type: "daemon", Shards: workers, StableAfter: time.Second}
}

// runDaemons runs members with workers and without other entities.
func runDaemons(t *testing.T, n int, o options, test func(c *testCluster)) {
	t.Helper()
	o.daemons = true
	if o.cfg == nil {
		o.cfg = daemonConfig
	}
	run(t, n, o, test)
}

// working waits until all workers are alive on the given members, and returns how many are on each.
func (c *testCluster) working(nodes ...*node) map[string]int {
	c.t.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		at := c.alive.places()
		n := 0
		for _, nd := range nodes {
			n += at[nd.ID]
		}
		if n == workers && len(at) <= len(nodes) {
			return at
		}
		if time.Since(begun) > 30*time.Second {
			c.t.Fatalf("workers are at %v", at)
		}
	}
}

// places returns how many entities live at each member.
func (o *observer) places() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := map[string]int{}
	for _, e := range o.live {
		at[e.node.ID]++
	}
	return at
}

func TestDaemons_RunWithoutMessagesSpreadOverTheMembers(t *testing.T) {
	runDaemons(t, 3, options{}, func(c *testCluster) {
		c.working(c.all()...)
		time.Sleep(10 * time.Second)
		at := c.working(c.all()...)
		require.Equal(t, map[string]int{"m000": 2, "m001": 2, "m002": 2}, at)
		for k := range workers {
			id := strconv.Itoa(k)
			self, err := c.node(k%3).ask(id, "self", time.Second)
			require.NoError(t, err)
			require.Equal(t, "daemon "+id+" "+id+" true true", self)
			require.Equal(t, k, c.node(0).region.Ref(id).Shard())
		}
		c.alive.mu.Lock()
		defer c.alive.mu.Unlock()
		require.GreaterOrEqual(t, c.alive.starts, workers)
	})
}

func TestDaemons_MoveWhenMembersLeaveAndDie(t *testing.T) {
	runDaemons(t, 3, options{}, func(c *testCluster) {
		c.working(c.all()...)
		require.NoError(t, c.node(1).leave(20*time.Second))
		c.working(c.node(0), c.node(2))
		c.alive.forget(c.node(2))
		c.crash(c.node(2))
		c.working(c.node(0))
	})
}

func TestDaemons_SomeMoveToAMemberThatJoins(t *testing.T) {
	runDaemons(t, 2, options{}, func(c *testCluster) {
		require.Equal(t, map[string]int{"m000": 3, "m001": 3}, c.working(c.all()...))
		m := c.Join()
		require.NoError(t, start(context.Background(), c.nodes[m]))
		time.Sleep(30 * time.Second)
		require.Equal(t, map[string]int{"m000": 2, "m001": 2, "m002": 2}, c.working(c.all()...))
	})
}

// A worker is restarted on the same member, whatever ended it.
func TestDaemons_AreStartedAgain(t *testing.T) {
	runDaemons(t, 2, options{}, func(c *testCluster) {
		c.working(c.all()...)
		for _, how := range []string{"stop", "passivate", "forget"} {
			at, err := c.node(0).ask("3", "who", time.Second)
			require.NoError(t, err)
			c.node(0).tell("3", how)
			time.Sleep(50 * time.Millisecond)
			require.Equal(t, workers-1, c.alive.count(), how)
			c.working(c.all()...)
			now, err := c.node(1).ask("3", "who", time.Second)
			require.NoError(t, err)
			require.Equal(t, at, now)
		}
	})
}

// A worker that cannot be created is retried with growing pauses, and its messages are returned.
func TestDaemons_OneThatFailsIsTriedForEver(t *testing.T) {
	var tries atomic.Int32
	produce := func(n *node) func(sharding.Entity) actor.Actor {
		return func(e sharding.Entity) actor.Actor {
			if e.ID != "0" {
				return &entity{node: n, Entity: e}
			}
			if tries.Add(1) <= 20 {
				panic("not yet")
			}
			return &entity{node: n, Entity: e}
		}
	}
	runDaemons(t, 1, options{produce: produce}, func(c *testCluster) {
		time.Sleep(30 * time.Second)
		require.Equal(t, workers-1, c.alive.count())
		require.Less(t, tries.Load(), int32(12))
		time.Sleep(2 * time.Minute)
		c.working(c.node(0))
		require.EqualValues(t, 21, tries.Load())
	})
}

func TestDaemons_RefuseWhatCannotBe(t *testing.T) {
	_, err := sharding.NewDaemons[message](nil, nil, nil, sharding.Config{Type: "daemon",
		Idle: time.Second, Limit: 1, Remember: true}, nil)
	for _, text := range []string{"Shards is 0, it must be the number of workers, from 1 to 4096",
		"no session", "no produce function",
		"workers are kept running, so Idle (1s), Limit (1) and Remember must not be set"} {
		require.ErrorContains(t, err, text)
	}
	_, err = sharding.NewDaemonsProxy[message](nil, nil, sharding.Config{Type: "daemon"})
	require.ErrorContains(t, err, "Shards is 0")
	runDaemons(t, 1, options{}, func(c *testCluster) {
		n := c.node(0)
		c.working(n)
		for _, id := range []string{"6", "-1", "01", "x", "", "+1", "99999999999999999999"} {
			require.ErrorIs(t, n.region.Ref(id).Tell(wrapperspb.String("x")), sharding.ErrInvalid,
				id)
			_, err := n.ask(id, "who", time.Second)
			require.ErrorIs(t, err, sharding.ErrInvalid, id)
			require.Zero(t, n.region.Ref(id).Shard())
			before := n.region.Stats().Refused
			n.System.Root.Send(n.region.PID(), &sharding.Envelope{
				ID: id, Message: wrapperspb.String("x")})
			require.Equal(t, before+1, n.region.Stats().Refused)
		}
		require.Equal(t, workers, c.alive.count())
	})
}

// A member with entities does not start where others have workers of the same type.
func TestDaemons_AndEntitiesOfOneTypeDoNotMix(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "daemon", Role: "worker", Shards: workers, MinMembers: 1}
	}
	roles := func(i int) []string {
		if i == 0 {
			return []string{"worker"}
		}
		return nil
	}
	runDaemons(t, 1, options{cfg: cfg, roles: roles}, func(c *testCluster) {
		c.working(c.node(0))
		c.opts.daemons, c.opts.proxies = false, func(int) bool { return true }
		m := c.Join()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := start(ctx, c.nodes[m])
		require.ErrorContains(t, err, "6 shards by number")
		require.ErrorContains(t, err, "6 shards by fnv1a64")
	})
}
