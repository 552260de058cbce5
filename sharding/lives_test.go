package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/sharding"
)

// A member is cut off from the others, and rejoins. What it accepted meanwhile waits and is handled
// in order, before later messages; also an Ask. With a request, whose actor has ended, and with
// everything if it does not rejoin, it is one dead letter.
func TestLives_MessagesThatWaitAreHandledInTheNextLife(t *testing.T) {
	lives := lifecycle.NewLives()
	var dead reported
	o := options{lives: map[string]*lifecycle.Lives{"node-0:1": lives},
		cfg: func(int) sharding.Config {
			return sharding.Config{Type: "cart", Shards: 16, Buffer: 1000}
		}, setup: func(n *node) { dead.at(n) }}
	run(t, 3, o, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		first, n := c.node(0), 0
		tell := func(life *node, count int) {
			for range count {
				life.tell(fmt.Sprint("e", n%20), fmt.Sprint(n))
				n++
			}
		}
		end := func(life *node) {
			tell(life, 200)
			require.NoError(t, lifecycle.Of(life.System).Stop(context.Background(), nil))
			_ = life.session.Close(context.Background())
			err := life.region.Ref("e1").Tell(wrapperspb.String("never"))
			require.ErrorIs(t, err, sharding.ErrClosed)
		}
		c.Expel(first.Member)
		time.Sleep(stale)
		answers := make(chan error, 1)
		go func() {
			_, err := first.ask("e3", "who", time.Minute)
			answers <- err
		}()
		time.Sleep(time.Millisecond) // the question waits, too
		end(first)
		second := c.nodes[c.Restart(first.Member)]
		tell(second, 100)
		time.Sleep(20 * time.Second)
		require.NoError(t, <-answers)
		for e := range 20 {
			var want []string
			for k := e; k < n; k += 20 {
				want = append(want, fmt.Sprint(k))
			}
			require.Equal(t, want, c.alive.notes(fmt.Sprintf("e%d ", e)))
		}
		require.Empty(t, dead.all())
		require.EqualValues(t, 1, second.region.Stats().Refused, "the one between the lives")

		c.Expel(second.Member)
		time.Sleep(stale)
		end(second)
		require.Empty(t, dead.all())
		lives.End()
		require.Len(t, dead.all(), 200)
		require.EqualValues(t, 202, second.region.Stats().Refused)
	})
}
