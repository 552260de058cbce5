package sharding_test

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
)

// A cut-off member looks at the coordinator's lease through a store that panics, ends the goroutine
// or does not return. It concludes nothing, keeps its shards, and looks again.
func TestOrphan_AStoreThatFailsItsLookTakesNoShard(t *testing.T) {
	for name, fail := range map[string]func(healed chan struct{}){
		"panics":             func(chan struct{}) { panic("as asked") },
		"ends its goroutine": func(chan struct{}) { runtime.Goexit() },
		"blocks without ctx": func(healed chan struct{}) { <-healed },
		"panics later":       func(healed chan struct{}) { <-time.After(time.Second); panic("as asked") },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, options{}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				far, near := c.node(2), []*node{c.node(0), c.node(1)}
				before := far.region.Status().Count(sharding.Active)
				require.Positive(t, before)
				healed := make(chan struct{})
				var fails atomic.Int64
				spoil := func(name string) {
					if name == "shard-cart-coordinator" &&
						strings.Contains(string(debug.Stack()), "(*Lease).renewed(") {
						fails.Add(1)
						fail(healed)
					}
				}
				far.store.spoil.Store(&spoil)
				c.Net.Partition([]string{far.Address}, []string{near[0].Address, near[1].Address})
				time.Sleep(40 * time.Second)
				require.Positive(t, fails.Load())
				require.Equal(t, before, far.region.Status().Count(sharding.Active))
				far.store.spoil.Store(nil)
				close(healed)
				c.settled(30*time.Second, near...)
				require.Zero(t, far.region.Status().Count(sharding.Active))
			})
		})
	}
}
