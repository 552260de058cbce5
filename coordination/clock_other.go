//go:build !linux

package coordination

import "time"

func bootTime() time.Duration { return 0 }

func kernelTime() (time.Time, bool) { return time.Time{}, false }
