package testkit

import (
	"testing"
	"time"
)

// Eventually tries check until it returns nil, and fails with its last error when that is not so within
// the given time, virtual in a bubble. It tries often at first and at least a hundred times in all.
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
