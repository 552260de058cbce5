package testkit

import (
	"testing"
	"time"
)

// Eventually calls check until it returns nil. If that does not happen within the given time,
// virtual in a bubble, the test fails with the last error. Eventually calls check often at first
// and at least a hundred times in total.
func Eventually(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	start := time.Now()
	pause := max(within/1000, 100*time.Microsecond)
	for tries := 1; ; tries++ {
		err := check()
		if err == nil {
			return
		}
		took := time.Since(start)
		if took >= within {
			t.Fatalf("not within %s, tried %d times, last: %v", short(within), tries, err)
			return
		}
		time.Sleep(min(pause, within-took))
		pause = min(pause*2, max(within/100, 100*time.Microsecond))
	}
}
