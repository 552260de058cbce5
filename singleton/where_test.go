package singleton_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatch_TellsOfEachMove(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		ctx, cancel := context.WithCancel(context.Background())
		var seen []string
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for place, known := range c.node(2).single.Watch(ctx) {
				seen = append(seen, fmt.Sprint(place.Token, known))
			}
		}()
		c.found(c.node(2), 20*time.Second)
		first, known := c.node(2).single.Where()
		require.True(t, known)
		time.Sleep(time.Minute)
		require.NoError(t, c.node(0).single.Close(context.Background()))
		c.found(c.node(2), 20*time.Second)
		second, _ := c.node(2).single.Where()
		require.NotEqual(t, first.Address, second.Address)
		require.GreaterOrEqual(t, second.Since.Sub(first.Since), time.Minute)
		require.Zero(t, first.TakeOver, "this member knew no place before")
		require.Positive(t, second.TakeOver)
		require.Less(t, second.TakeOver, 10*time.Second, "the minute before does not count")
		cancel()
		<-ended
		synctest.Wait()
		require.Equal(t, []string{"0 false", "1 true", "1 false", "2 true"}, seen)
	})
}
