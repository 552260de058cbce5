package singleton_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSingleton_OneInstanceReachableFromEveryMember(t *testing.T) {
	run(t, 3, options{}, func(c *cluster) {
		for i := range 3 {
			host, _ := c.found(c.node(i), 20*time.Second)
			require.Equal(t, "m000", host)
		}
		require.Equal(t, 1, c.alive.count())
		p, ok := c.node(2).single.Where()
		require.True(t, ok)
		require.Equal(t, c.Member(0).Address, p.Address)
		require.Positive(t, p.Token)
	})
}
