package noderun_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/node"
)

// TestRun_LogsNoErrorOfACleanRun also checks that few lines are logged: Proto.Actor alone logs
// dozens.
func TestRun_LogsNoErrorOfACleanRun(t *testing.T) {
	for level, most := range map[slog.Level]int{slog.LevelInfo: 6, slog.LevelDebug: 1000} {
		var out child.Screen
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quiet(newHands())
		cfg.Logger = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
		require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
			n.Go(func(context.Context) error { cancel(); return nil })
			return nil
		}))
		require.NotContains(t, out.String(), "level=ERROR")
		require.NotContains(t, out.String(), "level=WARN")
		require.Contains(t, out.String(), `msg="member is up"`)
		require.LessOrEqual(t, strings.Count(out.String(), "\n"), most, out.String())
		require.Equal(t, level == slog.LevelDebug, strings.Contains(out.String(),
			"Started partition manager"))
	}
}

// TestRun_LogsNoValues provokes the lines in which Proto.Actor logs whole messages, and replicates
// a value.
func TestRun_LogsNoValues(t *testing.T) {
	const value = "s3cret"
	for name, handler := range map[string]func(io.Writer, *slog.HandlerOptions) slog.Handler{
		"text": func(w io.Writer, o *slog.HandlerOptions) slog.Handler {
			return slog.NewTextHandler(w, o)
		},
		"JSON": func(w io.Writer, o *slog.HandlerOptions) slog.Handler {
			return slog.NewJSONHandler(w, o)
		},
	} {
		var out child.Screen
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quiet(newHands())
		cfg.Logger = slog.New(handler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
			dd, err := distributeddata.New(n.System, distributeddata.Config{MinMembers: 1})
			require.NoError(t, err)
			n.Go(func(ctx context.Context) error {
				defer cancel()
				set := distributeddata.NewKey("set", crdt.GSet[string]{})
				_, err := set.Update(ctx, dd, func(w *crdt.Writer, s *crdt.GSet[string]) error {
					s.Add(w, value)
					return nil
				}, distributeddata.Local)
				require.NoError(t, err)
				n.System.Root.Send(actor.NewPID(n.System.Address(), "nobody"), dd.Snapshot())
				root, m := n.System.Root, wrapperspb.String(value)
				for _, id := range []string{"nobody", "activator", "gossip",
					"partition-activator"} {
					root.Send(actor.NewPID(n.System.Address(), id), m)
				}
				_, _ = n.Cluster.Request("x", "no kind", m, cluster.WithTimeout(time.Millisecond),
					cluster.WithRetryCount(1))
				for _, line := range []string{
					"[DeadLetter]", "Activator received unknown message", "Invalid message",
					"Gossip received unknown message request", "Requesting",
				} {
					require.Eventually(t, func() bool {
						return strings.Contains(out.String(), line)
					}, patience, time.Millisecond, line)
				}
				return nil
			})
			return nil
		}), name)
		require.NotContains(t, out.String(), value, name)
		require.Contains(t, out.String(), "StringValue", "the type is logged")
	}
}

// full is a log handler that does not return from the moment its disk is full.
type full struct {
	slog.Handler
	is   *atomic.Bool
	free chan struct{}
}

func (full) Enabled(context.Context, slog.Level) bool { return true }

func (f full) Handle(context.Context, slog.Record) error {
	if f.is.Load() {
		<-f.free
	}
	return nil
}

func (f full) WithAttrs([]slog.Attr) slog.Handler { return f }

// TestRun_ALogHandlerThatBlocksStopsNothing but the log: the member answers, and ends in order.
func TestRun_ALogHandlerThatBlocksStopsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg, store := quiet(newHands()), memory.New()
	var isFull atomic.Bool
	free := make(chan struct{})
	defer close(free)
	cfg.Logger = slog.New(full{slog.DiscardHandler, &isFull, free})
	cfg.Health = &node.Health{}
	cfg.System = []actor.ConfigOption{func(c *actor.Config) {
		c.DeadLetterThrottleInterval = time.Millisecond // its timer would outlive the test
	}}
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	up := make(chan struct{})
	done := background(ctx, cfg, func(n *node.Node) error {
		n.Go(func(context.Context) error {
			isFull.Store(true)
			n.System.Logger().Warn("the first line that is not taken")
			close(up)
			return nil
		})
		return nil
	})
	returned(t, up)
	w := httptest.NewRecorder()
	cfg.Health.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "the log handler has not returned for ")
	cancel()
	require.NoError(t, returned(t, done))
}

// returned receives from c.
func returned[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.FailNow(t, "has not returned")
	}
	return v
}
