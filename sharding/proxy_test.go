package sharding_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The oldest member of a cluster that starts may have only a proxy. It announces that it hosts
// nothing, so the coordinator begins at the next member without waiting for it.
func TestProxy_AtTheOldestMemberDelaysNoStart(t *testing.T) {
	var begun time.Time
	o := options{proxies: func(i int) bool {
		if i == 0 {
			begun = time.Now()
		}
		return i == 0
	}}
	run(t, 3, o, func(c *testCluster) {
		c.settled(20*time.Second, c.node(1), c.node(2))
		require.Less(t, time.Since(begun), 6*time.Second)
		require.NoError(t, c.node(0).ready)
	})
}
