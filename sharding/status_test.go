package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/meters/meterstest"
	"github.com/concord-go/concord/sharding"
)

func TestStatus_IsMeasured(t *testing.T) {
	reader := sdk.NewManualReader()
	meters := sdk.NewMeterProvider(sdk.WithReader(reader))
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, Meters: meters}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for k := range 20 {
			_, err := c.node(k%2).ask(fmt.Sprint("e", k), "who", time.Second)
			require.NoError(t, err)
		}
		c.node(0).tell("e3", "passivate")
		time.Sleep(time.Second)
		m := meterstest.Collect(t, reader, "state")
		require.EqualValues(t, 16, m["concord.sharding.shards active"])
		require.EqualValues(t, 16, m["concord.sharding.shards elsewhere"])
		require.EqualValues(t, 19, m["concord.sharding.entities"])
		require.EqualValues(t, 20, m["concord.sharding.started"])
		require.EqualValues(t, 1, m["concord.sharding.passivated"])
		for _, name := range []string{"waiting", "held", "refused", "dropped", "failed"} {
			require.Zero(t, m["concord.sharding."+name])
		}

		s := c.node(0).region.Status()
		homes := s.Homes()
		require.Len(t, homes, 2)
		require.Equal(t, 16, homes["m000"]+homes["m001"])
		require.Len(t, c.node(0).region.Entities(1000), s.Entities())
		require.Len(t, c.node(0).region.Entities(3), 3)
		require.Empty(t, c.node(0).region.Entities(0))

		require.NoError(t, c.node(1).leave(20*time.Second))
		c.settled(20*time.Second, c.node(0))
		require.EqualValues(t, 16, meterstest.Collect(t, reader, "state")["concord.sharding.shards active"])
		require.Zero(t, meterstest.Collect(t, reader, "state")["concord.sharding.shards elsewhere"],
			"a member that has left tells nothing")
	})
}

// A member is ready once it has heard a coordinator, and not while it is cut off from it.
func TestCheck_SaysWhetherEntitiesCanBeFound(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 4, MinMembers: 3, OrphanAfter: 2 * time.Second}
	}
	early := func(n *node) {
		require.ErrorContains(t, lifecycle.Of(n.System).Check(),
			"is not listed in its own view yet")
	}
	run(t, 3, options{cfg: cfg, setup: early}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for _, n := range c.all() {
			require.NoError(t, lifecycle.Of(n.System).Check())
		}
		c.Net.Partition([]string{c.Member(2).Address}, []string{c.Member(0).Address,
			c.Member(1).Address})
		time.Sleep(20 * time.Second)
		require.ErrorContains(t, lifecycle.Of(c.node(2).System).Check(),
			"cut off from the coordinator")
		require.NoError(t, lifecycle.Of(c.node(1).System).Check())
		require.Equal(t, 4, c.node(0).region.Status().Count(sharding.Active)+c.node(
			1).region.Status().Count(sharding.Active))

		c.Net.Heal()
		time.Sleep(5 * time.Second)
		require.NoError(t, lifecycle.Of(c.node(2).System).Check())
	})
}

// A cut-off member gives its shards up once it has seen that the coordinator renews its lease,
// which takes a renewal and not a whole TTL.
func TestOrphan_GivesUpAfterARenewalOfTheCoordinator(t *testing.T) {
	const long = time.Minute
	run(t, 3, options{ttl: long}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		near := []*node{c.node(0), c.node(1)}
		c.Net.Partition([]string{c.Member(2).Address}, []string{near[0].Address, near[1].Address})
		took := c.settled(2*long, near...)
		t.Log("the others serve all shards after", took)
		require.Greater(t, took, 5*time.Second, "OrphanAfter")
		require.Less(t, took, 5*time.Second+long/3+5*time.Second)
		require.Zero(t, c.node(2).region.Status().Count(sharding.Active))
	})
}

func TestStatus_SaysSinceWhenAndAtWhoseRequest(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Role: "shop", Shards: 8, External: true,
			StableAfter: time.Second, MinMembers: 2}
	}
	roles := func(int) []string { return []string{"shop"} }
	run(t, 2, options{cfg: cfg, roles: roles}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		before := c.node(0).region.Status()
		require.Equal(t, "shop", before.Role)
		require.True(t, before.Movable)
		require.Equal(t, "shard-cart-", before.LeasePrefix)
		shard := 0
		for before.Shards[shard].State != sharding.Active {
			shard++
		}
		old := before.Shards[shard]
		require.Empty(t, old.Requested)
		time.Sleep(time.Minute)
		require.Equal(t, old, c.node(0).region.Status().Shards[shard], "nothing has changed")

		asked := time.Now()
		require.NoError(t, c.node(0).region.Allocate(context.Background(), map[int]string{
			shard: c.Member(1).Address}))
		c.at(shard, c.node(1))
		there := c.node(1).region.Status().Shards[shard]
		require.False(t, there.Since.Before(asked))
		require.Positive(t, there.TakeOver)
		require.Less(t, there.TakeOver, 10*time.Second)
		require.Equal(t, c.Member(1).Address, there.Requested)
		time.Sleep(5 * time.Second)
		here := c.node(0).region.Status().Shards[shard]
		require.Equal(t, sharding.Elsewhere, here.State)
		require.Equal(t, c.Member(1).ID, here.Home)
		require.False(t, here.Since.Before(asked))
		require.Zero(t, here.TakeOver)
		require.Equal(t, c.Member(1).Address, here.Requested)
	})
}

// What a member hosted when it was dropped is described also if it was silent before, when the
// coordinator assigned its shards anew, and if another process runs at its address.
func TestHosted_ByAMemberThatWasSilentBefore(t *testing.T) {
	for name, again := range map[string]bool{"dropped": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, options{}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				lost := c.node(2)
				n := 0
				for _, s := range lost.region.Status().Shards {
					if s.State == sharding.Active {
						n++
					}
				}
				had := fmt.Sprintf("%d shards of cart", n)
				near := c.all()[:2]
				c.Freeze(lost.Member)
				time.Sleep(5 * time.Second)
				for _, s := range near[0].region.Status().Shards {
					require.NotEqual(t, lost.ID, s.Home, "assigned anew")
				}
				if again {
					c.Restart(lost.Member)
				} else {
					c.Expel(lost.Member)
				}
				time.Sleep(time.Second)
				for _, nd := range near {
					require.Equal(t, had, lifecycle.Of(nd.System).Hosted([]string{lost.Address}))
				}
			})
		})
	}
}
