package sharding_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
)

// While a fault lasts that no entity can be created under, the log has one line about it in ten
// seconds, whatever the number of entities; and the entities serve when the fault has ended.
func TestCreate_AFaultDoesNotFloodTheLog(t *testing.T) {
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprint("panics=", panics), func(t *testing.T) {
			var log warnings
			var fault atomic.Bool
			produce := func(n *node) func(sharding.Entity) actor.Actor {
				return func(e sharding.Entity) actor.Actor {
					switch {
					case !fault.Load():
						return &entity{node: n, Entity: e}
					case panics:
						panic("planted")
					}
					return nil
				}
			}
			run(t, 1, options{log: log.handler(), produce: produce}, func(c *testCluster) {
				c.throughFault(&fault, &log, panics)
			})
		})
	}
}

func (c *testCluster) throughFault(fault *atomic.Bool, log *warnings, panics bool) {
	const text = "entity could not be created"
	level := slog.LevelWarn
	if panics {
		level = slog.LevelError
	}
	fault.Store(true)
	for id := range 100 {
		c.node(0).tell(fmt.Sprint("cart-", id), "first")
	}
	time.Sleep(6 * time.Second)
	failed := c.node(0).region.Stats().Failed
	require.Greater(c.t, failed, uint64(300))
	require.Len(c.t, log.With(text), 1)
	require.Contains(c.t, log.With(text)[0], fmt.Sprint("level=", level))
	require.Contains(c.t, log.With(text)[0], "unlogged=0 ")
	time.Sleep(10 * time.Second)
	lines := log.With(text)
	require.Len(c.t, lines, 2)
	_, after, _ := strings.Cut(lines[1], "unlogged=")
	var unlogged uint64
	_, err := fmt.Sscan(after, &unlogged)
	require.NoError(c.t, err)
	require.GreaterOrEqual(c.t, unlogged, failed-1)

	fault.Store(false)
	for id := range 100 {
		_, err := c.node(0).ask(fmt.Sprint("cart-", id), "last", time.Minute)
		require.NoError(c.t, err)
	}
	require.Len(c.t, log.With(text), 2)
}
