package sharding_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
)

// A rolling update adds a type. The new members serve it, and are ready, while members of the old
// version, which do not know it, still run; another update then removes it.
func TestRollout_AddsAndRemovesAType(t *testing.T) {
	knows := 2 // the members from this index on have the type
	run(t, 4, options{unaware: func(i int) bool { return i < knows }}, func(c *testCluster) {
		serves := func(within time.Duration, nodes ...*node) {
			t.Helper()
			for _, n := range nodes {
				for k := range 20 {
					begun := time.Now()
					_, err := n.ask(fmt.Sprint("e", k), "who", time.Minute)
					require.NoError(t, err, "from %v", n)
					require.Less(t, time.Since(begun), within, "from %v", n)
				}
				require.NoError(t, lifecycle.Of(n.System).Check())
			}
		}
		serves(15*time.Second, c.node(2), c.node(3))
		knows = 0
		olds := []*simnet.Member{c.Member(0), c.Member(1)}
		var fresh []*node
		for _, old := range olds {
			m := c.Restart(old)
			synctest.Wait()
			fresh = append(fresh, c.nodes[m])
			serves(10*time.Second, append(fresh, c.node(2), c.node(3))...)
		}
		knows = 100
		for _, i := range []int{2, 3} { // in order: they hand over
			require.NoError(t, c.node(i).leave(20*time.Second))
			c.Restart(c.Member(i))
			synctest.Wait()
			serves(10*time.Second, fresh...)
		}
	})
}

// A member with the role may have only a proxy: it hosts no shard, and if it is the oldest, another
// member coordinates.
func TestProxy_AtMembersWithTheRole(t *testing.T) {
	for proxied := range 2 {
		o := options{
			cfg: func(int) sharding.Config {
				return sharding.Config{Type: "cart", Shards: 16, Role: "backend"}
			},
			roles:   func(int) []string { return []string{"backend"} },
			proxies: func(i int) bool { return i == proxied },
		}
		t.Run(fmt.Sprint("member ", proxied), func(t *testing.T) {
			run(t, 3, o, func(c *testCluster) {
				for i := range 3 {
					for k := range 20 {
						home, err := c.node(i).ask(fmt.Sprint("e", k), "who", 20*time.Second)
						require.NoError(t, err)
						require.NotEqual(t, c.node(proxied).ID, home)
					}
					require.Zero(t, c.node(i).region.Stats().Panics)
				}
				require.Zero(t, c.node(0).region.Status().Homes()[c.node(proxied).ID])
			})
		})
	}
}
