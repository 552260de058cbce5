package bugs_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
)

func report(l *bugs.Log, to *slog.Logger) {
	defer func() { l.Report(to, "clerk", "sorting", recover()) }()
	panic("planted")
}

func TestReport_IsLoggedOnceASecondWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var l bugs.Log
		require.NoError(t, l.Check())
		for range 1000 {
			report(&l, log)
		}
		require.Equal(t, 1, strings.Count(out.String(), "level=ERROR"))
		for _, part := range []string{"component=clerk", "while=sorting", "panic=planted",
			"bugs_test.report"} {
			require.Contains(t, out.String(), part)
		}
		require.ErrorContains(t, l.Check(), "clerk panicked 0s ago, and there were 1000 panics")
		time.Sleep(time.Second)
		report(&l, log)
		require.Equal(t, 2, strings.Count(out.String(), "level=ERROR"))
		require.Contains(t, out.String(), "unlogged=999")
		time.Sleep(bugs.Recent)
		require.NoError(t, l.Check())
	})
}

// silent is a log handler of the application that panics.
type silent struct{ slog.Handler }

func (silent) Enabled(context.Context, slog.Level) bool { panic("the application's") }

func TestReport_TheLogMayPanicToo(t *testing.T) {
	var l bugs.Log
	report(&l, slog.New(silent{slog.DiscardHandler}))
	require.Error(t, l.Check())
}

// clumsy is an actor that panics on each text.
type clumsy struct{ started *atomic.Int64 }

func (c clumsy) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.started.Add(1)
	case string:
		panic(m)
	}
}

func TestGuardian_StartsAgainForEverAndTellsTheHealth(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		var started atomic.Int64
		var panics atomic.Uint64
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
			return clumsy{&started}
		}, bugs.Guardian("clumsy", &panics)))
		for range 30 { // Proto.Actor's own strategy stops an actor after ten
			system.Root.Send(pid, "planted")
			time.Sleep(5 * time.Second)
		}
		require.EqualValues(t, 31, started.Load())
		require.EqualValues(t, 30, panics.Load())
		require.ErrorContains(t, lifecycle.Of(system).Check(), "panics: a bug of this library: clumsy")
		time.Sleep(bugs.Recent)
		require.NoError(t, lifecycle.Of(system).Check())
		system.Root.Stop(pid)
		synctest.Wait()
	})
}
