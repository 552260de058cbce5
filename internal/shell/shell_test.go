package shell_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

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
		system := simnet.NewSystem("")
		h := &host{core: &echo{start: time.Now()}}
		h.shell = shell.New(shell.Config[any, string]{
			Core: h.core, Wake: wake{}, CarryOut: h.carryOut, Stepped: func() {
				h.done = append(h.done, "stepped")
			},
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

// Work interrupted by a panic is not done; everything else is.
func TestCarryOn_GoesOnBehindWhatPanicked(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func(actor.Context))) {
		try := func(ctx actor.Context, ev any) {
			defer func() { h.done = append(h.done, fmt.Sprint(recover(), h.shell.Interrupted())) }()
			h.shell.Step(ctx, ev)
		}
		do(func(ctx actor.Context) {
			try(ctx, say{"a", "event", "panic", "c"})
			h.shell.CarryOn(ctx, "more")
			try(ctx, burst{})
			h.shell.CarryOn(ctx, "resumed")
		})
		require.Equal(t, []string{
			"stepped", "a", "event", "panicfalse", "c", "more", "stepped", "brought about",
			"bursttrue", "resumed",
		}, h.done)
	})
}
