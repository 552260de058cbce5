package sharding_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
)

// lines keeps the log lines with one message.
type lines struct {
	message string
	mu      sync.Mutex
	kept    []slog.Record
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	if r.Message == l.message {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.kept = append(l.kept, r)
	}
	return nil
}

// take returns the lines, each with its level and the number of those before it that were not
// logged, and forgets them.
func (l *lines) take() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.kept {
		text := r.Level.String()
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "unlogged" {
				text += fmt.Sprint(" unlogged=", a.Value)
			}
			return true
		})
		out = append(out, text)
	}
	l.kept = nil
	return out
}

// While a fault lasts that no entity can be created under, the log has one line about it in ten
// seconds, whatever the number of entities; and the entities serve when the fault has ended.
func TestCreate_AFaultDoesNotFloodTheLog(t *testing.T) {
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprint("panics=", panics), func(t *testing.T) {
			log := &lines{message: "entity could not be created"}
			var fault atomic.Bool
			o := options{log: log, produce: func(n *node) func(sharding.Entity) actor.Actor {
				return func(e sharding.Entity) actor.Actor {
					switch {
					case !fault.Load():
						return &entity{node: n, Entity: e}
					case panics:
						panic("planted")
					}
					return nil
				}
			}}
			run(t, 1, o, func(c *testCluster) { c.throughFault(&fault, log, panics) })
		})
	}
}

func (c *testCluster) throughFault(fault *atomic.Bool, log *lines, panics bool) {
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
	require.Equal(c.t, []string{fmt.Sprint(level, " unlogged=0")}, log.take())
	time.Sleep(10 * time.Second)
	again := log.take()
	require.Len(c.t, again, 1)
	var unlogged uint64
	_, err := fmt.Sscanf(again[0], level.String()+" unlogged=%d", &unlogged)
	require.NoError(c.t, err)
	require.GreaterOrEqual(c.t, unlogged, failed-1)

	fault.Store(false)
	for id := range 100 {
		_, err := c.node(0).ask(fmt.Sprint("cart-", id), "last", time.Minute)
		require.NoError(c.t, err)
	}
	require.Empty(c.t, log.take())
}
