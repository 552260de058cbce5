package sharding_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
)

// All members are killed, and start again at once. The next coordinator waits for the lease of the
// former one. The leases of the shards, of other sessions, end at the same time: entities do not
// wait for a second TTL.
func TestCrash_OfAllMembersCostsOneTTL(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, MinMembers: 3}
	}
	run(t, 3, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for i := range 3 {
			c.crash(c.node(i))
		}
		var next []*node
		for i := range 3 {
			next = append(next, c.nodes[c.Start(c.Member(i).Address)])
		}
		live := c.Live()
		c.List(live, live)
		took := c.settled(40*time.Second, next...)
		require.Greater(t, took, ttl)
		require.Less(t, took, stale+3*time.Second)
	})
}
