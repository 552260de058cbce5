package coordination

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns the time since the machine started, including suspends.
func bootTime() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

func kernelTime() (time.Time, bool) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_REALTIME, &ts)
	return time.Unix(ts.Unix()), err == nil
}
