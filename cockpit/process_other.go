//go:build !unix

package cockpit

// cpuSeconds returns 0: the processor time is not available on this platform.
func cpuSeconds() float64 { return 0 }
