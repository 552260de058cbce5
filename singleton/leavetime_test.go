package singleton_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A member that does not host has no messages for the instance. It does not wait for the proxies
// that have asked it for the host and found the host elsewhere.
func TestClose_OfAMemberThatDoesNotHostTakesNoTime(t *testing.T) {
	run(t, 3, options{away: true}, func(c *testCluster) {
		c.node(1).store.away(false) // the proxies ask m000, which abstains
		for i := range 3 {
			host, _ := c.found(c.node(i), 30*time.Second)
			require.Equal(t, "m001", host)
		}
		c.node(0).store.away(false)
		begun := time.Now()
		require.NoError(t, c.node(0).single.Close(context.Background()))
		require.Less(t, time.Since(begun), 200*time.Millisecond)
	})
}
