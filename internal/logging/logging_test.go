package logging_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/logging"
)

// pipe is a handler that does not return while it is full.
type pipe struct {
	slog.Handler
	before func()
}

func (p *pipe) Handle(ctx context.Context, r slog.Record) error {
	p.before()
	return p.Handler.Handle(ctx, r)
}

func newPipe(before func()) (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	none := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	h := slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: none})
	return logging.Bounded(slog.New(&pipe{h, before})), &b
}

func TestBounded_ACallEndsWhenItsRecordIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := newPipe(func() { time.Sleep(100 * time.Millisecond) })
		for i := range 30 { // more than a second in all
			log.With("a", 1).WithGroup("g").Info("line", "i", i)
			require.Equal(t, i+1, strings.Count(out.String(), "\n"))
		}
		require.Contains(t, out.String(), "level=INFO msg=line a=1 g.i=29\n")
		require.Zero(t, logging.Blocked(log))
		require.Same(t, log, logging.Bounded(log))
	})
}

func TestBounded_NobodyWaitsForAHandlerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		log, out := newPipe(func() { <-free })
		began := time.Now()
		log.Warn("line", "i", 0)
		require.Equal(t, time.Second, time.Since(began))
		for i := range 1010 {
			log.With("b", 2).Warn("line", "i", i+1)
		}
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, time.Second, logging.Blocked(log))
		time.Sleep(4 * time.Second)
		require.Equal(t, 5*time.Second, logging.Blocked(log))
		require.Empty(t, out.String())

		close(free)
		synctest.Wait()
		lines := strings.Split(out.String(), "\n")
		require.Len(t, lines, 1003)
		require.Equal(t, "level=WARN msg=line i=0", lines[0])
		for i, line := range lines[1:1001] {
			require.Equal(t, "level=WARN msg=line b=2 i="+strconv.Itoa(i+1), line)
		}
		require.Contains(t, lines[1001], `msg="the log did not take lines for a while" for=5s dropped=10`)
		require.Zero(t, logging.Blocked(log))
		log.Info("again")
		require.Contains(t, out.String(), "msg=again\n")
	})
}

func TestBounded_AHandlerMayPanicOrEndItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, fault := range []func(){func() { panic("the application's") }, runtime.Goexit} {
			n := 0
			log, out := newPipe(func() {
				if n++; n == 1 {
					fault()
				}
			})
			log.Info("first")
			log.Info("second")
			require.Equal(t, "level=INFO msg=second\n", out.String())
		}
	})
}

func TestBlocked_OfAnotherLogger(t *testing.T) {
	require.Zero(t, logging.Blocked(slog.Default()))
}
