package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
)

func TestClusterStats_NamesMembersThatDoNotAnswer(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Role: "shop", Shards: 16, MinMembers: 3}
	}
	roles := func(i int) []string {
		if i == 3 {
			return nil
		}
		return []string{"shop"}
	}
	proxies := func(i int) bool { return i == 3 }
	early := func(n *node) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_, err := n.region.ClusterStats(ctx)
		require.ErrorIs(t, err, sharding.ErrUnknown)
		require.ErrorContains(t, err, "this member is not up")
	}
	run(t, 4, options{cfg: cfg, roles: roles, proxies: proxies, setup: early},
		func(c *testCluster) {
			c.settled(20*time.Second, c.all()...)
			for k := range 50 {
				_, err := c.node(k%4).ask(fmt.Sprint("e", k), "who", time.Second)
				require.NoError(t, err)
			}
			for _, n := range c.all() { // from a proxy, too
				began := time.Now()
				s, err := n.region.ClusterStats(context.Background())
				require.NoError(t, err)
				require.Empty(t, s.Missing)
				require.Len(t, s.Members, 3)
				shards, entities := 0, 0
				for _, m := range s.Members {
					shards, entities = shards+m.Shards, entities+m.Entities
				}
				require.Equal(t, 16, shards)
				require.Equal(t, 50, entities)
				require.Less(t, time.Since(began), 50*time.Millisecond)
				for i, m := range s.Members {
					own := c.node(i).region.Status()
					require.Equal(t, sharding.MemberStats{Member: c.node(i).ID,
						Shards: own.Count(sharding.Active), Entities: own.Entities()}, m)
				}
			}

			c.Net.Partition([]string{c.Member(2).Address}, []string{c.Member(0).Address,
				c.Member(1).Address, c.Member(3).Address})
			began := time.Now()
			s, err := c.node(3).region.ClusterStats(context.Background())
			require.NoError(t, err)
			require.Equal(t, 3*time.Second, time.Since(began))
			require.Equal(t, []string{"m002"}, s.Missing)
			require.Len(t, s.Members, 2)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			s, err = c.node(2).region.ClusterStats(ctx)
			require.NoError(t, err)
			require.Equal(t, []string{"m000", "m001"}, s.Missing)
			require.Equal(t, "m002", s.Members[0].Member)

			// A query whose answer was lost is repeated.
			go func() { time.Sleep(time.Second); c.Net.Heal() }()
			s, err = c.node(0).region.ClusterStats(context.Background())
			require.NoError(t, err)
			require.Empty(t, s.Missing)

			require.NoError(t, c.node(3).region.Close(context.Background()))
			_, err = c.node(3).region.ClusterStats(context.Background())
			require.ErrorIs(t, err, sharding.ErrClosed)
		})
}
