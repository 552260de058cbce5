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
	known  atomic.Pointer[calibration]
}

// calibration is how the clocks stand to each other.
type calibration struct {
	set       time.Duration // wall − mono
	suspended time.Duration // boot − mono
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
	if k := b.known.Load(); k != nil && (r.Wall-r.Mono-k.set).Abs() <= steady {
		return r.Mono + k.suspended
	}
	boot, after := b.kernel(), b.again()
	k := &calibration{r.Wall - r.Mono, boot - r.Mono}
	if after.Mono-r.Mono <= together && (after.Wall-after.Mono-k.set).Abs() <= steady {
		b.known.Store(k)
	}
	return boot
}
