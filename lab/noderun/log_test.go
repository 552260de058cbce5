package noderun_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

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
