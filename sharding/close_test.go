package sharding_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// A context that ends stops Close: entities are stopped after the message that each is handling,
// and the outcome is unknown. Later calls return the same.
func TestClose_WhenItsContextEnds(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 1}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		home, other := c.homeOf("x")
		home.tell("x", "sleep") // for five seconds
		for k := range 3 {
			home.tell("x", fmt.Sprint(k))
		}
		err := home.region.Close(short(c.t))
		require.ErrorIs(t, err, sharding.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		again := home.region.Close(context.Background())
		require.ErrorIs(t, again, sharding.ErrUnknown)
		require.ErrorIs(t, again, context.DeadlineExceeded)
		_, err = other.ask("x", "who", stale+20*time.Second)
		require.NoError(t, err)
		require.Empty(t, c.alive.notes("x "), "only the message that it was handling")
		begun := time.Now()
		_, err = home.ask("x", "who", time.Minute)
		require.ErrorIs(t, err, sharding.ErrClosed)
		require.Zero(t, time.Since(begun), "Ask does not wait after Close")
	})
}

// Messages are accepted while the shards move away from a member that closes its region, and each
// is handled.
func TestClose_MessagesMeanwhile(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 16, HandOff: 2 * time.Second}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		here, there := pair(c)
		n := c.node(0)
		n.tell(here, "sleep") // holds up the move for five seconds
		var accepted atomic.Int64
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			assert.NoError(t, n.region.Close(context.Background()))
		}()
		for {
			time.Sleep(10 * time.Millisecond)
			if n.region.Ref(there).Tell(wrapperspb.String("note")) != nil {
				break
			}
			accepted.Add(1)
		}
		<-closed
		require.Greater(t, accepted.Load(), int64(300))
		time.Sleep(time.Second)
		require.Len(t, c.alive.notes(there+" "), int(accepted.Load()))
	})
}
