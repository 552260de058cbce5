package timer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/timer"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host runs functions inside an actor with two timers.
type host struct {
	a, b   *timer.Timer
	mine   []any // accepted tags of a, in order
	others int   // not accepted by a
	start  time.Time
	at     []time.Duration
}

func (h *host) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		h.a, h.b = timer.New(ctx.ActorSystem(), ctx.Self()), timer.New(ctx.ActorSystem(),
			ctx.Self())
	case func():
		m()
	case *timer.Fired:
		if h.a.Mine(m) {
			h.mine = append(h.mine, m.Tag)
			h.at = append(h.at, time.Since(h.start))
			if h.a.Mine(m) {
				panic("accepted twice")
			}
		} else {
			h.others++
		}
	case *actor.Stopping:
		h.a.Stop()
		h.b.Stop()
	}
}

func run(t *testing.T, test func(t *testing.T, h *host, do func(func()))) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		h := &host{start: time.Now()}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return h }))
		synctest.Wait()
		test(t, h, func(f func()) {
			system.Root.Send(pid, f)
			synctest.Wait()
		})
		system.Root.Stop(pid)
		synctest.Wait()
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestFiresOnceAtItsTime(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func())) {
		do(func() { h.a.Set(time.Hour, "x") })
		require.True(t, h.a.Armed())
		pass(3 * time.Hour)
		require.Equal(t, []any{"x"}, h.mine)
		require.Equal(t, []time.Duration{time.Hour}, h.at)
		require.False(t, h.a.Armed())
	})
}

func TestSetAgainReplaces(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func())) {
		do(func() { h.a.Set(time.Minute, 1) })
		pass(30 * time.Second)
		do(func() { h.a.Set(time.Minute, 2) })
		pass(time.Hour)
		require.Equal(t, []any{2}, h.mine)
		require.Equal(t, []time.Duration{90 * time.Second}, h.at)
	})
}

func TestTimer_IgnoresAFiringQueuedBeforeStopOrSet(t *testing.T) {
	for _, then := range []func(h *host){
		func(h *host) { h.a.Stop() },
		func(h *host) { h.a.Set(time.Hour, "new") },
	} {
		run(t, func(t *testing.T, h *host, do func(func())) {
			do(func() {
				h.a.Set(time.Second, "late")
				time.Sleep(2 * time.Second) // the actor is busy while it fires
				then(h)
			})
			pass(10 * time.Second)
			require.Empty(t, h.mine)
			require.Equal(t, 1, h.others)
		})
	}
}

func TestTimersDoNotTakeEachOthersFirings(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func())) {
		do(func() { h.b.Set(time.Second, "b"); h.a.Set(time.Second, "a") })
		pass(time.Minute)
		require.Equal(t, []any{"a"}, h.mine)
		require.Equal(t, 1, h.others)
		require.False(t, h.a.Mine(nil))
	})
}

func TestRearmedFromItsOwnFiring(t *testing.T) {
	run(t, func(t *testing.T, h *host, do func(func())) {
		for i := range 5 {
			do(func() { h.a.Set(-time.Second, i) }) // at once, as a message
		}
		require.Equal(t, []any{0, 1, 2, 3, 4}, h.mine)
	})
}
