package singleton_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/singleton"
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

// Handlers of the event stream hear of each move, and may do what they must not: panic, end their
// goroutine, or block.
func TestPlaceChanged_IsPublished(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		var mu sync.Mutex
		var seen []string
		healed := make(chan struct{})
		c.node(2).System.EventStream.Subscribe(func(event any) {
			if e, ok := event.(*singleton.PlaceChanged); ok {
				mu.Lock()
				seen = append(seen, fmt.Sprint(e.Name, " ", e.Place.Token, " ", e.Known))
				n := len(seen)
				mu.Unlock()
				switch n {
				case 1:
					panic("as asked")
				case 2:
					runtime.Goexit()
				case 3:
					<-healed
				}
			}
		})
		for i := range 2 {
			c.found(c.node(2), 20*time.Second)
			time.Sleep(time.Second)
			require.NoError(t, c.node(i).single.Close(context.Background()))
		}
		c.found(c.node(2), 20*time.Second)
		_, err := c.node(2).ask("who", time.Second)
		require.NoError(t, err, "the handler that blocks holds nothing up")
		close(healed)
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []string{"jobs 1 true", "jobs 1 false", "jobs 2 true"}, seen[:3])
		require.Equal(t, "jobs 3 true", seen[len(seen)-1], "the last change is never skipped")
	})
}
