package disktest

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/timer"
)

// later is a clock that is ahead of the one of the process.
type later struct {
	timer.Clock
	by time.Duration
}

func (c later) Now() time.Time { return c.Clock.Now().Add(c.by) }

// lives runs a member with a directory, at a time after the present one, until work returns. It
// returns the names of the rows that the member leaves.
func lives(t *testing.T, k kind, dir string, after time.Duration,
	work func(context.Context, *distributeddata.Replicator)) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := mustOpen(t, k, dir)
	var dd *distributeddata.Replicator
	c := simnet.NewCluster(simnet.Config{Options: simnet.Options{Seed: 1}, Members: 1,
		Setup: func(m *simnet.Member) {
			timer.Attach(m.System, timer.Host{Clock: later{timer.ClockOf(m.System), after}})
			var err error
			dd, err = distributeddata.New(m.System, distributeddata.Config{
				Member: "one", MinMembers: 1, Durable: []string{"*"}, Store: s,
				HeartbeatInterval: 50 * time.Millisecond,
				Expiry:            map[string]time.Duration{"session-*": time.Hour},
				ClockSkew:         10 * time.Millisecond,
			})
			require.NoError(t, err)
		}})
	defer c.Close()
	require.NoError(t, dd.Ready(ctx))
	work(ctx, dd)
	require.NoError(t, dd.Close(ctx))
	require.NoError(t, s.Close())

	s = mustOpen(t, k, dir)
	defer func() { require.NoError(t, s.Close()) }()
	var names []string
	for name := range read(t, s).whole(t) {
		names = append(names, name)
	}
	return names
}

// A durable entry keeps its remaining time to live over restarts, and leaves the disk when it has
// expired. An hour lasts until five quarters of it have passed.
func TestExpiry_TheRemainingTimeSurvivesRestarts(t *testing.T) {
	each(t, func(t *testing.T, k kind, _ *rand.Rand) {
		dir := newDir(t)
		entry := func(name string) distributeddata.Key[crdt.ORSet[string]] {
			return distributeddata.NewKey(name, crdt.ORSet[string]{})
		}
		write := func(ctx context.Context, dd *distributeddata.Replicator, name string) {
			_, err := entry(name).Update(ctx, dd,
				func(w *crdt.Writer, v *crdt.ORSet[string]) error {
					v.Add(w, "x")
					return nil
				}, distributeddata.Local)
			require.NoError(t, err)
		}
		has := func(rows []string, name string) bool {
			return slices.ContainsFunc(rows, func(row string) bool {
				return strings.Contains(row, name)
			})
		}
		rows := lives(t, k, dir, 0, func(ctx context.Context, dd *distributeddata.Replicator) {
			write(ctx, dd, "session-old")
		})
		require.True(t, has(rows, "session-old"))

		rows = lives(t, k, dir, 45*time.Minute,
			func(ctx context.Context, dd *distributeddata.Replicator) {
				require.Equal(t, []string{"session-old"}, slices.Collect(dd.Keys()))
				write(ctx, dd, "session-new")
			})
		require.True(t, has(rows, "session-old"))
		require.True(t, has(rows, "session-new"))

		rows = lives(t, k, dir, 76*time.Minute,
			func(_ context.Context, dd *distributeddata.Replicator) {
				require.Eventually(t, func() bool {
					return slices.Equal([]string{"session-new"}, slices.Collect(dd.Keys()))
				}, time.Minute, 10*time.Millisecond, "it is deleted when the member is ready")
			})
		require.False(t, has(rows, "session-old"), "it has left the disk")
		require.True(t, has(rows, "session-new"))
	})
}
