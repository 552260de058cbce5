//go:build unix

package cockpit

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuSeconds returns the processor time that the process has used, on all cores.
func cpuSeconds() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}
