package coordination

import (
	"context"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// Clock is what a session takes all time from, see Config.Clock. Its methods may be called by many
// goroutines. Reading and timers belong together: a clock that is slow or stands still has timers that
// are late or wait.
type Clock interface {
	// Read returns what the clocks show now.
	Read() Reading
	// AfterFunc calls f in its own goroutine when Mono has risen by d. stop withdraws it and reports whether
	// that was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Reading is what the clocks of a process show at one moment. Each counts from any moment that is the same
// for all readings of one Clock.
type Reading struct {
	Mono time.Duration // never goes back; stops while the machine is suspended
	Boot time.Duration // runs on while it is suspended; always 0 if there is none
	Wall time.Duration // may jump in both directions
}

// processClock is the clocks of this process, by way of package time, so that a testing/synctest bubble
// governs it all.
type processClock struct {
	start time.Time
	boot  *bootClock // nil: there is none, or it belongs to another time than package time
}

// newClock uses the boot clock only if the kernel agrees with package time on what time it is: in a
// bubble it does not.
func newClock() processClock {
	c := processClock{start: time.Now()}
	if kernel, ok := kernelTime(); ok && kernel.Sub(c.start).Abs() < time.Minute {
		c.boot = &bootClock{kernel: bootTime, again: c.running}
	}
	return c
}

// Read reads the monotonic clock first: what happens between two samples makes a holder give up early.
func (c processClock) Read() Reading {
	r := c.running()
	if c.boot != nil {
		r.Boot = c.boot.at(r)
	}
	return r
}

// running is what the clocks show that package time reads; that takes no call of the kernel.
func (c processClock) running() Reading {
	t := time.Now()
	return Reading{Mono: t.Sub(c.start), Wall: time.Duration(t.UnixNano() - c.start.UnixNano())}
}

func (processClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

func (s *Session) now() core.Reading { return core.Reading(s.clock.Read()) }

// timeout bounds ctx by Config.OperationTimeout. On a Clock of the user's, the context has no Deadline, for
// that would be a moment of another clock.
func (s *Session) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.cfg.Clock == nil {
		return context.WithTimeout(ctx, s.cfg.OperationTimeout)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := s.clock.AfterFunc(s.cfg.OperationTimeout, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// alarm rings a channel on the time of a Clock. It belongs to one goroutine.
type alarm struct {
	clock Clock
	rings chan struct{}      // has room for one
	at    time.Duration      // on Mono, while set
	stop  func() (soon bool) // nil: not set
}

func newAlarm(c Clock) *alarm { return &alarm{clock: c, rings: make(chan struct{}, 1)} }

// within lets it ring after d at the latest. It may ring sooner, or once too often.
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

func (a *alarm) off() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}
