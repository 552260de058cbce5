package sharding_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
)

// Handlers of the event stream hear of the last state of each shard, and may do what they must not:
// panic, end their goroutine, or block.
func TestShardChanged_IsPublished(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		var mu sync.Mutex
		var seen []string
		last := map[int]sharding.ShardChanged{}
		healed := make(chan struct{})
		n := c.node(1)
		c.settled(20*time.Second, c.all()...)
		n.System.EventStream.Subscribe(func(event any) {
			e, ok := event.(*sharding.ShardChanged)
			if !ok {
				return
			}
			mu.Lock()
			if was, known := last[e.Shard]; known && was.State != e.Was {
				t.Errorf("shard %d was %v, the event says %v", e.Shard, was.State, e.Was)
			}
			last[e.Shard] = *e
			seen = append(seen, fmt.Sprint(e.Was, " to ", e.State))
			k := len(seen)
			mu.Unlock()
			switch k {
			case 1:
				panic("as asked")
			case 2:
				runtime.Goexit()
			case 3:
				<-healed
			}
		})
		require.NoError(t, c.node(0).leave(20*time.Second))
		c.settled(20*time.Second, n)
		synctest.Wait()
		mu.Lock()
		require.Len(t, seen, 3, "the third handler blocks, and holds up nothing else")
		mu.Unlock()
		close(healed)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, s := range n.region.Status().Shards {
			e, changed := last[s.Shard]
			if !changed {
				require.Equal(t, sharding.Active, s.State, "it was here before")
				continue
			}
			require.Equal(t, sharding.ShardChanged{Type: "cart", Shard: s.Shard, Was: e.Was,
				State: sharding.Active, Home: s.Home, Token: s.Token, Since: s.Since}, e)
		}
		require.Contains(t, seen, "elsewhere to active", "the states between were left out")
	})
}
