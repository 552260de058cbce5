package shell_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/timer"
)

// echo is a core that returns effects and wakes as instructed.
type echo struct {
	wake  time.Time
	wakes []time.Duration
	start time.Time
}

type (
	say   []string  // returns effects
	at    time.Time // requests a wake
	wake  struct{}
	burst struct{} // panics
)

func (c *echo) Step(now time.Time, ev any) []string {
	switch ev := ev.(type) {
	case say:
		return ev
	case at:
		c.wake = time.Time(ev)
	case wake:
		if !c.wake.IsZero() && !now.Before(c.wake) {
			c.wake = time.Time{}
		}
		c.wakes = append(c.wakes, now.Sub(c.start))
	case burst:
		panic("burst")
	}
	return nil
}

func (c *echo) NextWake() time.Time { return c.wake }

// host runs functions as an actor.
type host struct {
	core   *echo
	shell  *shell.Shell[any, string]
	done   []string
	settle func(actor.Context)
	failed func(actor.Context, string)
	panics atomic.Uint64
	log    bytes.Buffer
}

func (h *host) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		h.shell.Start(ctx)
	case *actor.Stopping:
		h.shell.Stop()
	case *timer.Fired:
		h.shell.Fired(ctx, m)
	case func(actor.Context):
		m(ctx)
	}
}

func (h *host) carryOut(ctx actor.Context, e string) {
	switch e {
	case "event":
		h.shell.Step(ctx, say{"brought about"})
	case "panic":
		panic(e)
	}
	h.done = append(h.done, e)
}

func run(t *testing.T, test func(t *testing.T, h *host, do func(func(actor.Context)))) {
	simnet.Bubble(t, func(t *testing.T) {
		h := &host{core: &echo{start: time.Now()}}
		system := actor.NewActorSystem(actor.WithLoggerFactory(
			func(*actor.ActorSystem) *slog.Logger {
				return slog.New(slog.NewTextHandler(&h.log, nil))
			}))
		h.shell = shell.New(shell.Config[any, string]{
			Name: "host", Core: h.core, Wake: wake{}, CarryOut: h.carryOut, Stepped: func() {
				h.done = append(h.done, "stepped")
			},
			Failed: func(ctx actor.Context, e string) { h.failed(ctx, e) }, Panics: &h.panics,
			Settled: func(ctx actor.Context) {
				if f := h.settle; f != nil {
					h.settle = nil
					f(ctx)
				}
			},
		})
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return h }))
		test(t, h, func(f func(actor.Context)) {
			system.Root.Send(pid, f)
			synctest.Wait()
		})
		system.Root.Stop(pid)
		synctest.Wait()
	})
}

func TestStep_AnEventFromAnEffectComesAfterIt(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func(actor.Context))) {
		h.settle = func(ctx actor.Context) { h.shell.Step(ctx, say{"last"}) }
		do(func(ctx actor.Context) { h.shell.Step(ctx, say{"event", "b"}) })
		require.Equal(t, []string{"stepped", "event", "b", "stepped", "brought about", "stepped",
			"last"}, h.done)
	})
}

func TestWake_ComesInTimeAndAtMostOnceTooSoon(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func(actor.Context))) {
		in := func(d time.Duration) {
			do(func(ctx actor.Context) { h.shell.Step(ctx, at(h.core.start.Add(d))) })
		}
		in(10 * time.Second)
		in(5 * time.Second) // earlier: set again
		in(8 * time.Second) // later: fires once too early
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{5 * time.Second, 8 * time.Second}, h.core.wakes)
		in(2 * time.Minute)
		do(func(ctx actor.Context) { h.shell.Step(ctx, at{}) }) // never
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, h.core.wakes, 2)
	})
}

// What panics is not done; everything else is.
func TestCarryOut_APanicIsLoudAndTheRestIsCarriedOut(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func(actor.Context))) {
		h.failed = func(ctx actor.Context, e string) { h.shell.Step(ctx, say{"instead of " + e}) }
		do(func(ctx actor.Context) {
			h.shell.Step(ctx, say{"a", "event", "panic", "c"})
			require.Error(t, lifecycle.Of(ctx.ActorSystem()).Check())
		})
		require.Equal(t, []string{
			"stepped", "a", "event", "c", "stepped", "brought about", "stepped", "instead of panic",
		}, h.done)
		require.EqualValues(t, 1, h.panics.Load())
		require.Contains(t, h.log.String(), `component=host while="carrying out a string" panic=panic`)
		require.Contains(t, h.log.String(), "(*host).carryOut", "the stack")
		time.Sleep(time.Minute)
		do(func(ctx actor.Context) {
			require.NoError(t, lifecycle.Of(ctx.ActorSystem()).Check())
		})
	})
}

func TestCarryOn_GoesOnBehindAStepThatPanicked(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func(actor.Context))) {
		try := func(ctx actor.Context, evs ...any) {
			defer func() { h.done = append(h.done, fmt.Sprint(recover(), h.shell.Interrupted())) }()
			h.settle = func(ctx actor.Context) {
				for _, ev := range evs[1:] {
					h.shell.Step(ctx, ev)
				}
			}
			h.shell.Step(ctx, evs[0])
		}
		do(func(ctx actor.Context) {
			try(ctx, say{"a"}, burst{}, say{"b"})
			h.shell.CarryOn(ctx, "resumed")
		})
		require.Equal(t, []string{
			"stepped", "a", "bursttrue", "resumed", "stepped", "b",
		}, h.done)
	})
}

// A wake that a panic has prevented comes after the restart of the actor.
func TestStart_AfterAPanicTheCoreIsWokenInTime(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func(actor.Context))) {
		do(func(ctx actor.Context) { h.core.wake = h.core.start.Add(5 * time.Second) })
		do(func(ctx actor.Context) { h.shell.Step(ctx, burst{}) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{5 * time.Second}, h.core.wakes)
		require.False(t, h.shell.Interrupted())
	})
}
