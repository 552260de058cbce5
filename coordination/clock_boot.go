package coordination

import (
	"sync/atomic"
	"time"
)

// bootClock spares most calls of the kernel, each of which takes longer than all else in a Check. The boot
// clock differs from the monotonic one by the sum of all suspends. A suspend moves the wall clock by as much
// against the monotonic one, in the same step of the kernel; else only who sets the wall clock does that. So while
// wall and monotonic clock differ by what they did, there was no suspend, unless somebody has set the wall
// clock back by just as much, to two millionths of a second. If they differ by anything else, the kernel is asked.
type bootClock struct {
	kernel func() time.Duration
	again  func() Reading // the other clocks, once more
	known  calibration
}

// calibration is how the clocks stand to each other. It is read and written without locks and allocation, for Check
// does: it is right if serial is even, and the same before and after.
type calibration struct {
	serial    atomic.Uint64 // 0: none yet; odd: it is being written
	set       atomic.Int64  // wall − mono
	suspended atomic.Int64  // boot − mono
}

func (c *calibration) load() (set, suspended time.Duration, ok bool) {
	before := c.serial.Load()
	set, suspended = time.Duration(c.set.Load()), time.Duration(c.suspended.Load())
	return set, suspended, before != 0 && before%2 == 0 && c.serial.Load() == before
}

// store leaves it to another who is at it.
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
	// steady bounds by how much wall − mono differs between two readings if nobody has set the clock.
	steady = 2 * time.Microsecond
	// together bounds how far apart the clocks may be read in a calibration, and so its error. Config.Margin
	// covers that.
	together = 20 * time.Microsecond
)

// at is the boot clock at the moment of a reading of the others.
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
