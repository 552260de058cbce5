package coordination

import (
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// Clock is the source of all time in a session; see Config.Clock. Its methods may be called from
// many goroutines. Readings and timers must agree: if a clock is slow or stands still, its timers
// are late or do not fire.
type Clock interface {
	// Read returns the present readings of the clocks.
	Read() Reading
	// AfterFunc calls f in its own goroutine when Mono has risen by d. stop cancels the call and
	// reports whether it did so in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Reading holds the readings of the clocks of a process at one moment. Each counts from an
// arbitrary origin, which is the same for all readings of one Clock.
type Reading struct {
	Mono time.Duration // never goes back; stops while the machine is suspended
	Boot time.Duration // continues while it is suspended; always 0 if there is no such clock
	Wall time.Duration // may jump in both directions
}

// processClock reads the clocks of this process through package time, so that it also works in a
// testing/synctest bubble.
type processClock struct {
	start time.Time
	boot  *bootClock // nil: there is none, or its time is not that of package time
}

// newClock uses the boot clock only if the kernel and package time agree about the present time. In
// a synctest bubble they do not.
func newClock() processClock {
	c := processClock{start: time.Now()}
	if kernel, ok := kernelTime(); ok && kernel.Sub(c.start).Abs() < time.Minute {
		c.boot = &bootClock{kernel: bootTime, again: c.running}
	}
	return c
}

// Read reads the monotonic clock first, so that time passing between the two reads makes a holder
// give up early.
func (c processClock) Read() Reading {
	r := c.running()
	if c.boot != nil {
		r.Boot = c.boot.at(r)
	}
	return r
}

// running reads the clocks that package time provides. It makes no system call.
func (c processClock) running() Reading {
	t := time.Now()
	return Reading{Mono: t.Sub(c.start), Wall: time.Duration(t.UnixNano() - c.start.UnixNano())}
}

func (processClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

func (s *Session) now() core.Reading { return core.Reading(s.clock.Read()) }

// alarm sends on a channel after a time on a Clock. It belongs to one goroutine.
type alarm struct {
	clock Clock
	rings chan struct{}      // buffered, capacity one
	at    time.Duration      // on Mono, while set
	stop  func() (soon bool) // nil: not set
}

func newAlarm(c Clock) *alarm { return &alarm{clock: c, rings: make(chan struct{}, 1)} }

// within sets the alarm to fire after d at the latest. It may fire earlier, or once too often.
func (a *alarm) within(d time.Duration) {
	at := a.clock.Read().Mono + d
	if a.stop != nil && a.at <= at {
		return
	}
	a.off()
	a.at = at
	a.stop = a.clock.AfterFunc(d, func() {
		select {
		case a.rings <- struct{}{}:
		default:
		}
	})
}

// late returns by how much the time for which the alarm is set has passed.
func (a *alarm) late() time.Duration {
	if a.stop == nil {
		return 0
	}
	return max(0, a.clock.Read().Mono-a.at)
}

func (a *alarm) off() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}
