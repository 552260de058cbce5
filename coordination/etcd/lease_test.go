package etcd

import (
	"testing"
	"time"
)

// TestOutlives: an etcd lease that outlives has at least the TTL of the records left, even on a
// clock that runs 1/4 too slow, and the time between two keepalives is not too long.
func TestOutlives(t *testing.T) {
	begun := time.Now()
	for _, ttl := range []time.Duration{time.Millisecond, time.Second, 1500 * time.Millisecond,
		30 * time.Second, 24 * time.Hour} {
		k := leaseKey{nonce: "n", ttl: ttl}
		granted := time.Duration(k.seconds()) * time.Second
		if !k.outlives(begun, begun) || !k.outlives(begun, begun.Add(ttl/3)) {
			t.Errorf("%v: %v is not long enough", ttl, granted)
		}
		if late := (granted - ttl) * 4 / 5; !k.outlives(begun, begun.Add(late)) ||
			k.outlives(begun, begun.Add(late+1)) {
			t.Errorf("%v: %v after %v", ttl, granted, late)
		}
	}
}

// TestOutlives_ASuspendedMachine tests a monotonic clock that stood still.
func TestOutlives_ASuspendedMachine(t *testing.T) {
	k := leaseKey{nonce: "n", ttl: 30 * time.Second}
	begun := time.Now()
	woken := time.Unix(begun.Unix()+3600, 0) // without a monotonic reading, the wall clock counts
	if k.outlives(begun, woken) {
		t.Error("an hour was not noticed")
	}
}
