package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trace records names in order.
type trace struct {
	mu  sync.Mutex
	ran []string
}

func (t *trace) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ran = append(t.ran, name)
}

func (t *trace) hook(name string, err error) func(context.Context) error {
	return func(context.Context) error {
		t.add(name)
		return err
	}
}

func TestPhasesRunInOrderAndEveryErrorIsKept(t *testing.T) {
	system := simnet.NewSystem("s")
	var tr trace
	bad, worse := errors.New("bad"), errors.New("worse")
	for _, h := range []struct {
		p    lifecycle.Phase
		name string
		err  error
	}{{lifecycle.Replicator, "r", worse}, {lifecycle.Sharding, "s", bad},
		{lifecycle.Leases, "l", nil}, {lifecycle.Singleton, "o", nil}} {
		_, err := lifecycle.OnStop(system, h.p, h.name, tr.hook(h.name, h.err))
		require.NoError(t, err)
	}
	cancel, err := lifecycle.OnStop(system, lifecycle.Sharding, "closed before",
		tr.hook("closed before", nil))
	require.NoError(t, err)
	cancel()
	cancel()
	_, err = lifecycle.OnStop(system, lifecycle.Leases, "panics", func(context.Context) error {
		panic("boom")
	})
	require.NoError(t, err)

	err = lifecycle.Of(system).Stop(t.Context(), tr.hook("last", nil))
	require.ErrorIs(t, err, bad)
	require.ErrorIs(t, err, worse)
	require.ErrorContains(t, err, `leases "panics": panic: boom`)
	require.Equal(t, []string{"s", "o", "l", "r", "last"}, tr.ran)
}

func TestSecondStopWaitsForTheFirst(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("s")
		bad := errors.New("bad")
		_, err := lifecycle.OnStop(system, lifecycle.Leases, "slow", func(context.Context) error {
			time.Sleep(time.Minute)
			return bad
		})
		require.NoError(t, err)
		h := lifecycle.Of(system)
		var errs []error
		var mu sync.Mutex
		for range 3 {
			go func() {
				err := h.Stop(t.Context(), nil)
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}()
		}
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, h.Stop(short, nil), context.DeadlineExceeded)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, errs, 3)
		for _, err := range errs {
			require.ErrorIs(t, err, bad)
		}
		_, err = lifecycle.OnStop(system, lifecycle.Leases, "late", nil)
		require.ErrorIs(t, err, lifecycle.ErrStopping)
	})
}

func TestAHookThatHangsLeavesTimeForTheOthers(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("s")
		var tr trace
		release := make(chan struct{})
		_, err := lifecycle.OnStop(system, lifecycle.Sharding, "hangs",
			func(context.Context) error {
				<-release
				return nil
			})
		require.NoError(t, err)
		_, err = lifecycle.OnStop(system, lifecycle.Replicator, "flush",
			func(ctx context.Context) error {
				if ctx.Err() == nil {
					tr.add("in time")
				}
				return nil
			})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		start := time.Now()
		err = lifecycle.Of(system).Stop(ctx, func(ctx context.Context) error {
			tr.add("last")
			return ctx.Err()
		})
		require.ErrorContains(t, err, `sharding "hangs": did not stop in time`)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{"in time", "last"}, tr.ran)
		require.InDelta(t, 6, time.Since(start).Seconds(), 0.5,
			"all but half of a third for each of the other two")
		close(release)
	})
}

// The names of many hooks begin with their phase: errors said sharding "sharding cart".
func TestStop_ErrorsNameThePhaseOnce(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("s")
		for _, name := range []string{"sharding cart", "sharding", "cart"} {
			_, err := lifecycle.OnStop(system, lifecycle.Sharding, name,
				func(context.Context) error { return errors.New("failed") })
			require.NoError(t, err)
		}
		err := lifecycle.Of(system).Stop(t.Context(), func(context.Context) error { return nil })
		require.EqualError(t, err,
			"sharding \"cart\": failed\nsharding: failed\nsharding \"cart\": failed")
	})
}

// A member that starts for long says for which components it waits, once.
func TestStart_LateComponentsAreLogged(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, nil))
		system := actor.NewActorSystem(actor.WithLoggerFactory(
			func(*actor.ActorSystem) *slog.Logger { return log }))
		for name, takes := range map[string]time.Duration{"a": time.Second, "b": time.Minute} {
			lifecycle.OnStart(system, name, func(context.Context) error {
				time.Sleep(takes)
				return nil
			})
		}
		require.NoError(t, lifecycle.Of(system).Start(t.Context()))
		require.Equal(t, 1, strings.Count(out.String(), "level=WARN"), out.String())
		require.Contains(t, out.String(), "components=b for=10s")
		system.Shutdown()
	})
}

// What can never start must not be waited for until the time-out of the start.
func TestStart_OneThatFailsEndsTheOthers(t *testing.T) {
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	fails := func(context.Context) error {
		time.Sleep(time.Second)
		panic("no way")
	}
	for _, with := range []func(*actor.ActorSystem, string, func(context.Context) error){
		lifecycle.OnStart, lifecycle.WhileStarting,
	} {
		simnet.Bubble(t, func(t *testing.T) {
			system := simnet.NewSystem("s")
			lifecycle.OnStart(system, "waits", waits)
			with(system, "fails", fails)
			start := time.Now()
			require.EqualError(t, lifecycle.Of(system).Start(t.Context()),
				`start "fails": panic: no way`)
			require.Equal(t, time.Second, time.Since(start))
		})
	}
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("s")
		lifecycle.OnStart(system, "starts", func(context.Context) error { return nil })
		lifecycle.WhileStarting(system, "waits", waits)
		require.NoError(t, lifecycle.Of(system).Start(t.Context()), "and it has ended")
	})
}

func TestStartRunsAllSideBySide(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("s")
		var tr trace
		for _, name := range []string{"a", "b", "c"} {
			lifecycle.OnStart(system, name, func(context.Context) error {
				time.Sleep(time.Minute)
				tr.add(name)
				return nil
			})
		}
		start := time.Now()
		require.NoError(t, lifecycle.Of(system).Start(t.Context()))
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, []string{"a", "b", "c"}, slices.Sorted(slices.Values(tr.ran)))
		require.ErrorContains(t, func() error {
			_, err := lifecycle.OnStop(system, lifecycle.Phase(9), "x", nil)
			return err
		}(), "no such phase: 9")
	})
}

// A program with a thousand entity types logged as many lines for one fault, and its last error had
// as many.
func TestStop_OfThousandsOfComponentsSaysAFew(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.New(slog.NewTextHandler(&out, nil))
		system := actor.NewActorSystem(actor.WithLoggerFactory(
			func(*actor.ActorSystem) *slog.Logger { return log }))
		release, last := make(chan struct{}), errors.New("last")
		for i := range 1000 {
			_, err := lifecycle.OnStop(system, lifecycle.Sharding, fmt.Sprint("sharding k", i),
				func(context.Context) error {
					if i == 999 {
						return last
					}
					<-release
					return nil
				})
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := lifecycle.Of(system).Stop(ctx, nil)
		const ends = "k6, sharding k7 and 991 more"
		require.Regexp(t, `^sharding "k0": did not stop in time: .*\n(.*\n){7}and 992 more$`,
			err.Error())
		require.ErrorIs(t, err, last, "also one that it does not name")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, strings.Count(out.String(), "level=WARN"), out.String())
		require.Equal(t, 1, strings.Count(out.String(), "level=ERROR"), out.String())
		require.Equal(t, 2, strings.Count(out.String(), ends), out.String())
		close(release)
		synctest.Wait()
		system.Shutdown()
	})
}
