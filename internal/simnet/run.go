package simnet

import (
	"testing"
	"testing/synctest"
	"time"
)

// Run runs test in a bubble of virtual time, with a cluster of cfg.Members members that see each
// other. Afterwards it closes the cluster. It fails the test if a message was sent that remoting
// could not carry, unless cfg.Unserialisable is set.
func Run(t *testing.T, cfg Config, test func(t *testing.T, c *Cluster)) {
	t.Helper()
	Bubble(t, func(t *testing.T) {
		c := NewCluster(cfg)
		defer func() {
			c.Close()
			if types := c.Net.Unserialisable(); len(types) > 0 && !cfg.Unserialisable {
				t.Errorf("sent over the network, but no protobuf messages: %v", types)
			}
		}()
		test(t, c)
	})
}

// Bubble runs test in a bubble of virtual time and waits for the remaining goroutines: a dead
// letter leaves a goroutine that sleeps for a second, and a bubble must not end before its
// goroutines. Functions passed to t.Cleanup run before that.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() {
			synctest.Wait()
			time.Sleep(2 * time.Second)
		})
		test(t)
	})
}
