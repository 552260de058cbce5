package coordination

import (
	"sync/atomic"
	"time"
)

// bootClock avoids most system calls for the boot clock, each of which takes longer than the rest
// of a Check. The boot clock differs from the monotonic clock by the sum of all suspends. A suspend
// also moves the wall clock against the monotonic clock by the same amount, in the same step of the
// kernel. Apart from suspends, only setting the wall clock changes that difference. So as long as
// wall − mono is unchanged there was no suspend, unless the wall clock has been set back by the
// length of the suspend, to within two microseconds. If wall − mono has changed, bootClock asks the
// kernel.
type bootClock struct {
	kernel func() time.Duration
	again  func() Reading // reads the other clocks once more
	known  calibration
}

// calibration holds the differences between the clocks. It is read and written without locks or
// allocation, since Check uses it. A read is valid if serial is even and is the same before and
// after.
type calibration struct {
	serial    atomic.Uint64 // 0: not set yet; odd: a write is in progress
	set       atomic.Int64  // wall − mono
	suspended atomic.Int64  // boot − mono
}

func (c *calibration) load() (set, suspended time.Duration, ok bool) {
	before := c.serial.Load()
	set, suspended = time.Duration(c.set.Load()), time.Duration(c.suspended.Load())
	return set, suspended, before != 0 && before%2 == 0 && c.serial.Load() == before
}

// store is a no-op if another goroutine is storing.
func (c *calibration) store(set, suspended time.Duration) {
	before := c.serial.Load()
	if before%2 != 0 || !c.serial.CompareAndSwap(before, before+1) {
		return
	}
	c.set.Store(int64(set))
	c.suspended.Store(int64(suspended))
	c.serial.Store(before + 2)
}

const (
	// steady bounds the change of wall − mono between two readings while the wall clock is not set.
	steady = 2 * time.Microsecond
	// together bounds the time between the clock reads of one calibration, and so its error.
	// Config.Margin covers that error.
	together = 20 * time.Microsecond
)

// at returns the boot clock at the moment of reading r.
func (b *bootClock) at(r Reading) time.Duration {
	set := r.Wall - r.Mono
	if known, suspended, ok := b.known.load(); ok && (set-known).Abs() <= steady {
		return r.Mono + suspended
	}
	boot, after := b.kernel(), b.again()
	if after.Mono-r.Mono <= together && (after.Wall-after.Mono-set).Abs() <= steady {
		b.known.store(set, boot-r.Mono)
	}
	return boot
}
