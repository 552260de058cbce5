package timer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/timer"
)

// half is a clock that runs at half the rate.
type half struct{ start time.Time }

func (h half) Now() time.Time { return h.start.Add(time.Since(h.start) / 2) }

func (h half) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(2*d, f).Stop
}

func TestTimersGoByTheClockOfTheirSystem(t *testing.T) {
	simnet.Bubble(t, func(t *testing.T) {
		system := simnet.NewSystem("")
		require.WithinDuration(t, time.Now(), timer.ClockOf(system).Now(), 0)
		clock := half{time.Now()}
		var armed []time.Duration
		timer.Attach(system, timer.Host{Clock: clock, Armed: func(_ *actor.PID, d time.Duration,
			tag any) {
			if tag == "x" {
				armed = append(armed, d)
			}
		}})
		h := &host{start: time.Now()}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return h }))
		system.Root.Send(pid, func() { h.a.Set(time.Minute, "x") })
		pass(time.Hour)
		require.Equal(t, []time.Duration{2 * time.Minute}, h.at)
		require.Equal(t, []time.Duration{time.Minute}, armed)
		require.Equal(t, 30*time.Minute, timer.ClockOf(system).Now().Sub(h.start))
		system.Root.Stop(pid)
		synctest.Wait()
	})
}
