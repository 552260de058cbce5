package coordination_test

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

// starved is a clock whose timers are late, as in a process that is paused.
type starved struct {
	begun time.Time
	late  atomic.Int64
}

func (c *starved) Read() coordination.Reading {
	d := time.Since(c.begun)
	return coordination.Reading{Mono: d, Wall: d}
}

func (c *starved) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d+time.Duration(c.late.Load()), f).Stop
}

func TestStatus_CountsStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &starved{begun: time.Now()}
		var lines strings.Builder // written by the session, and read after its end
		session, err := coordination.Open(memory.New(), coordination.Config{Clock: clock,
			Owner: "a", Logger: slog.New(slog.NewTextHandler(&lines, nil))})
		require.NoError(t, err)
		g, err := session.Lease("x").TryAcquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Zero(t, session.Status().Stalls)
		clock.late.Store(int64(100 * time.Millisecond))
		time.Sleep(time.Minute)
		require.Zero(t, session.Status().Stalls, "a tenth of a second is no stall")
		clock.late.Store(int64(2 * time.Second))
		time.Sleep(6 * time.Second)
		clock.late.Store(0)
		time.Sleep(time.Minute)
		s := session.Status()
		require.Positive(t, s.Stalls)
		require.Less(t, s.Stalls, uint64(4))
		require.Equal(t, 2*time.Second, s.LongestStall)
		require.NoError(t, g.Check(), "it was shorter than the lease allows")
		time.Sleep(time.Minute)
		require.Equal(t, s.Stalls, session.Status().Stalls)
		_ = session.Close(context.Background())
		logged := regexp.MustCompile(`level=WARN msg="this process did not run .*" owner=a late=(\w+)`).
			FindAllStringSubmatch(lines.String(), -1)
		require.Len(t, logged, int(s.Stalls), "a line for each pause, and none for a short one")
		require.Equal(t, "2s", logged[0][1])
	})
}
