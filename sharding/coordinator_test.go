package sharding_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/sharding"
)

// The member with the coordinator leaves, or crashes, while the others send to entities that are
// not there. No message waits, and no shard of the others moves.
func TestCoordinator_MovesOrDiesAndNoMessageWaits(t *testing.T) {
	for _, how := range []string{"leaves", "crashes"} {
		t.Run(how, func(t *testing.T) {
			run(t, 3, options{}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				gone, others := c.node(0), []*node{c.node(1), c.node(2)} // the oldest coordinates
				stay := map[int]coordination.Token{}
				for _, n := range others {
					for _, s := range n.region.Status().Shards {
						if s.State == sharding.Active {
							stay[s.Shard] = s.Token
						}
					}
				}
				require.NotEmpty(t, stay)
				end := make(chan error, 1)
				begun, k := time.Now(), 0
				for ; time.Since(begun) < 2*stale; k++ {
					if k == 100 {
						go func() {
							if how == "crashes" {
								c.alive.forget(gone)
								c.crash(gone)
								end <- nil
								return
							}
							end <- gone.leave(20 * time.Second)
							c.Leave(gone.Member)
						}()
					}
					id, n := fmt.Sprint("e", k%40), others[k%2]
					if _, stays := stay[n.region.Ref(id).Shard()]; stays {
						asked := time.Now()
						_, err := n.ask(id, "who", time.Second)
						require.NoError(t, err)
						require.Less(t, time.Since(asked), 15*time.Millisecond,
							"one round trip, after %v", time.Since(begun))
					}
					time.Sleep(3 * time.Millisecond)
				}
				require.NoError(t, <-end)
				c.settled(20*time.Second, others...)
				got := map[int]coordination.Token{}
				for _, n := range others {
					for _, s := range n.region.Status().Shards {
						if _, stays := stay[s.Shard]; stays && s.State == sharding.Active {
							got[s.Shard] = s.Token
						}
					}
				}
				require.Equal(t, maps.Clone(stay), got, "no shard of the others has moved")
				require.Zero(t, others[0].region.Stats().Refused+others[1].region.Stats().Refused)
			})
		})
	}
}
