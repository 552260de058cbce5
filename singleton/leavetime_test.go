package singleton_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A member that does not host has no messages for the instance. It does not wait for the proxies
// that have asked it for the host and found the host elsewhere.
func TestClose_OfAMemberThatDoesNotHostTakesNoTime(t *testing.T) {
	run(t, 3, options{away: true}, func(c *testCluster) {
		c.node(1).store.away(false) // the proxies ask m000, which declines
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

// A host passes on the messages that arrive while it stops. If all members stop together there is
// no next host, and none of them waits for one.
func TestClose_OfAllMembersTogetherTakesNoTime(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 30*time.Second)
		}
		var all sync.WaitGroup
		begun := time.Now()
		for i := range 3 {
			for range 10 {
				all.Go(func() { // fails if the instance has stopped
					_, _ = c.node(i).single.Ask(context.Background(), wrapperspb.String("?"))
				})
			}
			all.Go(func() { assert.NoError(t, c.node(i).single.Close(context.Background())) })
		}
		all.Wait()
		require.Less(t, time.Since(begun), 200*time.Millisecond)
	})
}
