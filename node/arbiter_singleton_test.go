package node

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/singleton"
	"github.com/concord-go/concord/testkit"
)

// instances counts the live instances of a singleton by member.
type instances struct {
	mu    sync.Mutex
	alive []int
	most  int
}

func (n *instances) at(member int) func(coordination.Tenure) actor.Actor {
	return func(coordination.Tenure) actor.Actor {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			n.mu.Lock()
			defer n.mu.Unlock()
			switch ctx.Message().(type) {
			case *actor.Started:
				n.alive = append(n.alive, member)
				n.most = max(n.most, len(n.alive))
			case *actor.Stopped:
				n.alive = slices.DeleteFunc(n.alive, func(m int) bool { return m == member })
			}
		})
	}
}

func (n *instances) where() []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.alive)
}

// TestArbiter_ASingletonMovesToTheMajority cuts off the host with a minority of two of five, which
// reaches the lease store.
func TestArbiter_ASingletonMovesToTheMajority(t *testing.T) {
	testkit.Run(t, 5, func(t *testing.T, c *testkit.Cluster) {
		arbitrate(c, 3)
		var live instances
		testkit.Each(c, func(m *testkit.Member) (*singleton.Singleton, error) {
			return singleton.New(m.System, m.Session, singleton.Config{Name: "one"},
				live.at(m.Index))
		})
		within(t, c, 30*time.Second, "hosted", func() bool { return len(live.where()) == 1 })
		host := live.where()[0]
		oldest, _ := membership.Attach(c.Member(0).System).View().Oldest("")
		require.Equal(t, host, index(c, oldest.ID))

		minority := []int{host, (host + 1) % 5}
		slices.Sort(minority)
		majority := slices.DeleteFunc([]int{0, 1, 2, 3, 4}, func(i int) bool {
			return slices.Contains(minority, i)
		})
		split(c, minority, majority)
		took := within(t, c, 3*time.Second, "hosted by the majority", func() bool {
			at := live.where()
			return len(at) == 1 && slices.Contains(majority, at[0])
		})
		t.Logf("moved after %v", took)
		for range 120 {
			c.Advance(time.Second)
			require.Len(t, live.where(), 1)
			require.Contains(t, majority, live.where()[0])
		}
		meet(c)
		rejoin := func() bool {
			for _, m := range c.Members() {
				select {
				case <-membership.Attach(m.System).Removed():
					m.Restart()
				default:
				}
			}
			return len(hosts(c)) == 5
		}
		within(t, c, time.Minute, "open everywhere", rejoin)
		c.Advance(time.Minute)
		require.Len(t, live.where(), 1)
		require.Equal(t, 1, live.most, "never two")
	})
}
