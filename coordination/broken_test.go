package coordination

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// empty is a store without records that accepts every write.
type empty struct{}

func (empty) Load(context.Context, string) (leasestore.Record, leasestore.Version, error) {
	return leasestore.Record{}, "", nil
}

func (empty) Swap(context.Context, string, leasestore.Version,
	leasestore.Record) (leasestore.Version, error) {
	return "1", nil
}

// trap is a log handler that panics on a message, left times, as this library may elsewhere.
type trap struct {
	slog.Handler
	on   string
	left *atomic.Int64
}

func (h trap) Enabled(context.Context, slog.Level) bool { return true }

func (h trap) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == h.on && h.left.Add(-1) >= 0 {
		panic("planted")
	}
	return h.Handler.Handle(ctx, r)
}

// faulty is a machine that panics in its step, once.
type faulty struct {
	machine
	on   func(core.Event) bool
	done bool
}

func (m *faulty) Step(now core.Reading, ev core.Event) []core.Effect {
	if !m.done && m.on(ev) {
		m.done = true
		panic("planted")
	}
	return m.machine.Step(now, ev)
}

func broken(t *testing.T, on string, test func(s *Session, log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var left atomic.Int64
		left.Store(1)
		s, err := Open(empty{}, Config{Owner: "me", TTL: 10 * time.Second})
		require.NoError(t, err)
		s.cfg.Logger = slog.New(trap{slog.NewTextHandler(&log, nil), on, &left}) // not bounded
		test(s, &log)
	})
}

// The process, the session and its other leases continue.
func TestBroken_APanicInAnEffectIsReported(t *testing.T) {
	broken(t, "lease acquired", func(s *Session, log *bytes.Buffer) {
		ctx := context.Background()
		g, err := s.Lease("a").Acquire(ctx)
		require.NoError(t, err)
		require.NoError(t, g.Check())
		require.EqualValues(t, 1, s.Status().Panics)
		require.ErrorContains(t, s.Broken(), "a bug of this library: session me panicked")
		require.Contains(t, log.String(), `while="carrying out a core.Begin" panic=planted`)
		require.Contains(t, log.String(), "(*driver).begin", "the stack")
		time.Sleep(time.Minute)
		require.NoError(t, s.Broken())
		require.NoError(t, g.Check(), "it is renewed")
		other, err := s.Lease("b").Acquire(ctx)
		require.NoError(t, err)
		require.NoError(t, other.Release(ctx))
		require.NoError(t, g.Release(ctx))
		require.NoError(t, s.Close(ctx))
	})
}

// Nobody knows what a machine that panicked believes: all tenures end, and every caller is
// answered.
func TestBroken_APanicInAStepEndsTheSession(t *testing.T) {
	for name, on := range map[string]func(core.Event) bool{
		"acquire": func(ev core.Event) bool { _, is := ev.(core.Acquire); return is },
		"answer":  func(ev core.Event) bool { _, is := ev.(core.Loaded); return is },
		"release": func(ev core.Event) bool { _, is := ev.(core.Release); return is },
	} {
		t.Run(name, func(t *testing.T) {
			broken(t, "", func(s *Session, log *bytes.Buffer) {
				ctx := context.Background()
				g, err := s.Lease("a").Acquire(ctx)
				require.NoError(t, err)
				l := s.Lease("b")
				l.driver.machine = &faulty{machine: l.driver.machine, on: on}
				other, err := l.Acquire(ctx)
				if name == "release" {
					require.NoError(t, err)
					err = other.Release(ctx)
				}
				require.ErrorIs(t, err, ErrClosed)
				synctest.Wait()
				require.ErrorIs(t, g.Check(), ErrLost)
				require.ErrorContains(t, g.Check(), "a bug of this library")
				require.Error(t, g.Context().Err())
				require.Zero(t, g.Remaining())
				require.EqualValues(t, 1, s.Status().Panics)
				require.Contains(t, log.String(), "(*faulty).Step")
				_, err = s.Lease("a").TryAcquire(ctx)
				require.ErrorIs(t, err, ErrClosed)
				require.ErrorContains(t, err, "a bug of this library")
				require.ErrorIs(t, s.Close(ctx), ErrUnknown)
				time.Sleep(time.Hour)
				require.ErrorContains(t, s.Broken(), "a bug of this library", "for ever")
			})
		})
	}
}

// stuck is a log handler that does not return until it is free.
type stuck struct {
	slog.Handler
	free chan struct{}
}

func (stuck) Enabled(context.Context, slog.Level) bool { return true }

func (h stuck) Handle(context.Context, slog.Record) error {
	<-h.free
	return nil
}

func TestSession_ALogHandlerThatBlocksLosesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, free := t.Context(), make(chan struct{})
		defer close(free)
		s, err := Open(empty{}, Config{Logger: slog.New(stuck{slog.DiscardHandler, free})})
		require.NoError(t, err)
		g, err := s.Lease("a").Acquire(ctx) // is logged
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.NoError(t, g.Check())
		require.NoError(t, g.Release(ctx))
		require.NoError(t, s.Close(ctx))
	})
}
