package sharding_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
)

// One of three members is gone, and another one crashes and starts again. Its replicator is not
// ready before the third is back, since what a majority has acknowledged may be lost; its shards do
// not wait for that.
func TestStart_WithoutAMajorityOfTheReplicas(t *testing.T) {
	run(t, 3, options{majority: true}, func(c *testCluster) {
		c.settled(20*time.Second, c.node(0), c.node(1), c.node(2))
		for _, i := range []int{0, 1} {
			c.crash(c.node(i))
			time.Sleep(2 * stale)
		}
		again := func(i int) *node {
			m := c.Start(c.Member(i).Address)
			c.List(c.Live(), []*simnet.Member{m})
			c.List([]*simnet.Member{m}, c.Live())
			return c.nodes[m]
		}
		ready := func(is func(context.Context) error) error {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return is(ctx)
		}
		n := again(1)
		require.NoError(t, ready(lifecycle.Of(n.System).Start))
		c.settled(20*time.Second, c.node(2), n)
		require.Error(t, ready(n.data.Ready))
		again(0)
		require.NoError(t, ready(n.data.Ready))
	})
}
