package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// The others drop a member that goes on, as providers do after a pause. Its entities end, its
// shards go to the others, and it refuses messages, except those that came before it learned that.
// It never hosts again, and closes.
func TestRemoved_RegionEndsEntitiesRefusesMessages(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		gone, others := c.node(2), []*node{c.node(0), c.node(1)}
		for k := range 40 {
			_, err := gone.ask(fmt.Sprint("e", k), "who", 3*time.Second)
			require.NoError(t, err)
		}
		require.Positive(t, gone.region.Status().Entities())
		c.Expel(gone.Member)
		for k := 0; gone.region.Status().Count(sharding.Active) > 0; k++ {
			require.Less(t, k, 1000, "it goes on hosting")
			_ = gone.region.Ref(fmt.Sprint("e", k%40)).Tell(wrapperspb.String("during"))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Zero(t, gone.region.Status().Entities())
		_, err := gone.ask("e1", "who", 3*time.Second)
		require.ErrorIs(t, err, sharding.ErrClosed)
		time.Sleep(time.Second)
		dead := deadLetters(gone.System)
		require.NoError(t, gone.region.Ref("e1").Tell(wrapperspb.String("after")))
		time.Sleep(time.Second)
		require.EqualValues(t, 1, dead.Load())
		require.Empty(t, gone.region.Entities(100))

		t.Log("the others serve all shards after", c.settled(stale+10*time.Second, others...))
		for k := range 40 {
			home, err := others[0].ask(fmt.Sprint("e", k), "who", 3*time.Second)
			require.NoError(t, err)
			require.NotEqual(t, gone.ID, home)
		}
		time.Sleep(2 * time.Minute)
		require.Zero(t, gone.region.Status().Count(sharding.Active))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.NoError(t, gone.region.Close(ctx))
		_, err = gone.ask("e1", "who", time.Second)
		require.ErrorIs(t, err, sharding.ErrClosed)
	})
}
