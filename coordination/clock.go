package coordination

import (
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// clock reads the clocks of this process. Everything else here takes time from it or from timers of
// package time, so that a testing/synctest bubble governs it all.
type clock struct {
	start time.Time
	boot  bool // the boot clock belongs to the same time as package time
}

// newClock uses the boot clock only if the kernel agrees with package time on what time it is: in a
// bubble it does not.
func newClock() clock {
	c := clock{start: time.Now()}
	if kernel, ok := kernelTime(); ok {
		c.boot = kernel.Sub(c.start).Abs() < time.Minute
	}
	return c
}

// now reads the monotonic clock first: what happens between two samples makes a holder give up early.
func (c clock) now() core.Reading {
	t := time.Now()
	r := core.Reading{Mono: t.Sub(c.start), Wall: time.Duration(t.UnixNano() - c.start.UnixNano())}
	if c.boot {
		r.Boot = bootTime()
	}
	return r
}
