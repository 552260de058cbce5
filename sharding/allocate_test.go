package sharding_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/sharding"
)

// at waits until a shard is active at a member.
func (c *testCluster) at(shard int, n *node) {
	c.t.Helper()
	for begun := time.Now(); n.region.Status().Shards[shard].State != sharding.Active; time.Sleep(
		50 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			c.t.Fatalf("shard %d is %v at %s", shard, n.region.Status().Shards[shard].State, n.ID)
		}
	}
}

func TestAllocate_MovesShardsToMembersThatAreThere(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Role: "shop", Shards: 8, External: true,
			StableAfter: time.Second, MinMembers: 3}
	}
	roles := func(i int) []string {
		if i == 3 {
			return nil
		}
		return []string{"shop"}
	}
	run(t, 4, options{cfg: cfg, roles: roles, proxies: func(i int) bool {
		return i == 3
	}}, func(c *testCluster) {
		ctx := context.Background()
		c.settled(20*time.Second, c.node(0), c.node(1), c.node(2))
		proxy := c.node(3)
		require.NoError(t, proxy.region.Allocate(ctx, map[int]string{
			0: "m002", 1: c.Member(2).Address, 2: "m002", 3: "nobody"}))
		for s := range 3 {
			c.at(s, c.node(2))
		}
		got, err := c.node(1).region.Allocations(ctx)
		require.NoError(t, err)
		require.Equal(t, map[int]string{0: "m002", 1: c.Member(2).Address, 2: "m002", 3: "nobody"},
			got)
		c.settled(20*time.Second, c.node(0), c.node(1), c.node(2)) // shard 3, too

		require.NoError(t, proxy.region.Allocate(ctx, map[int]string{1: "m000", 3: ""}))
		c.at(1, c.node(0))
		got, err = proxy.region.Allocations(ctx)
		require.NoError(t, err)
		require.Equal(t, map[int]string{0: "m002", 1: "m000", 2: "m002"}, got)

		// The named member leaves: its shards are served by others.
		require.NoError(t, c.node(2).leave(20*time.Second))
		c.settled(20*time.Second, c.node(0), c.node(1))
		// A later coordinator knows the requests.
		require.NoError(t, proxy.region.Allocate(ctx, map[int]string{
			0: "m001", 2: "m001", 1: "m001"}))
		require.NoError(t, c.node(0).leave(20*time.Second))
		c.settled(20*time.Second, c.node(1))
	})
}

func TestAllocate_RefusesWhatItCannotUse(t *testing.T) {
	run(t, 1, options{}, func(c *testCluster) {
		err := c.node(0).region.Allocate(context.Background(), nil)
		require.ErrorIs(t, err, sharding.ErrInvalid)
		require.ErrorContains(t, err, "External is not set")
		_, err = c.node(0).region.Allocations(context.Background())
		require.ErrorIs(t, err, sharding.ErrInvalid)
	})
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 8, External: true}
	}
	run(t, 1, options{cfg: cfg, setup: func(n *node) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, n.region.Allocate(ctx, map[int]string{0: "x"}), sharding.ErrUnknown,
			"it is not up")
	}}, func(c *testCluster) {
		ctx := context.Background()
		err := c.node(0).region.Allocate(ctx, map[int]string{-1: "a", 8: "b",
			3: strings.Repeat("x", 256), 4: "m000"})
		require.ErrorIs(t, err, sharding.ErrInvalid)
		for _, text := range []string{"shard -1, it must be from 0 to 7", "shard 8,",
			"member of shard 3 has 256 bytes, at most 255"} {
			require.ErrorContains(t, err, text)
		}
		got, err := c.node(0).region.Allocations(ctx)
		require.NoError(t, err)
		require.Empty(t, got, "all or nothing")
		require.NoError(t, c.node(0).region.Close(ctx))
		require.ErrorIs(t, c.node(0).region.Allocate(ctx, map[int]string{0: "x"}),
			sharding.ErrClosed)
	})
}

// toOldest places every shard on the first member.
func toOldest(l sharding.Layout) map[int]string {
	homes := map[int]string{}
	for s := range l.Homes {
		homes[s] = l.Hosts[0].ID
	}
	return homes
}

func TestStrategy_ChoosesHomes(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 8, StableAfter: time.Second, MinMembers: 3,
			Strategy: toOldest}
	}
	run(t, 3, options{cfg: cfg}, func(c *testCluster) {
		c.settled(5*time.Second, c.node(0))
		require.NoError(t, c.node(0).leave(20*time.Second))
		c.settled(20*time.Second, c.node(1))
	})
}

// Whatever the function does, every shard is served, and the coordinator continues to work.
func TestStrategy_MayDoWhatItMustNot(t *testing.T) {
	var block chan struct{} // created in the bubble
	for name, strategy := range map[string]func(n *node, l sharding.Layout) map[int]string{
		"panic": func(*node, sharding.Layout) map[int]string { panic("as asked") },
		"exit":  func(*node, sharding.Layout) map[int]string { runtime.Goexit(); return nil },
		"nil":   func(*node, sharding.Layout) map[int]string { return nil },
		"gone": func(*node, sharding.Layout) map[int]string {
			return map[int]string{0: "gone", 1: "", -1: "m000", 99: "m000", 1 << 30: "m001"}
		},
		"block": func(*node, sharding.Layout) map[int]string { <-block; return nil },
		"again": func(n *node, l sharding.Layout) map[int]string {
			_ = n.region.Status()
			_, _ = n.region.ClusterStats(context.Background())
			_ = n.region.Ref("x").Tell(nil)
			clear(l.Homes)
			return map[int]string{0: "m001"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			var nodes sync.Map
			cfg := func(i int) sharding.Config {
				return sharding.Config{Type: "cart", Shards: 8, StableAfter: time.Second,
					Strategy: func(l sharding.Layout) map[int]string {
						calls.Add(1)
						n, _ := nodes.Load(i)
						return strategy(n.(*node), l)
					}}
			}
			setup := func(n *node) {
				nodes.Store(n.Index, n)
				if n.Index == 0 {
					block = make(chan struct{})
				}
			}
			var log child.Screen
			o := options{cfg: cfg, setup: setup, log: slog.NewTextHandler(&log, nil)}
			run(t, 2, o, func(c *testCluster) {
				defer close(block)
				c.settled(20*time.Second, c.all()...)
				for k := range 20 {
					_, err := c.node(k%2).ask(fmt.Sprint("e", k), "who", 5*time.Second)
					require.NoError(t, err)
				}
				time.Sleep(12 * time.Second)
				require.Positive(t, calls.Load())
				switch name {
				case "block":
					require.EqualValues(t, 1, calls.Load(), "one call at a time")
					require.Len(t, log.With("does not return"), 1)
				case "panic", "exit", "gone":
					require.Len(t, log.With("Strategy failed"), 1, "one line for all calls")
				}
				if name == "again" {
					c.at(0, c.node(1))
				}
				require.NoError(t, c.node(1).leave(20*time.Second))
				c.settled(20*time.Second, c.node(0))
			})
		})
	}
}
