package faulty

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

var slowAll = flag.Bool("slow-all", false, "slow round trips of several lengths for ten TTLs each")

// slowTTL is the TTL of the sessions on slow stores.
const slowTTL = 4 * time.Second

// RoundTrips runs Slow with round trips that take a twentieth of the TTL or, with -slow-all, also a
// tenth, up to most: a call of a store may take several. open returns two stores between which and
// their server each message takes the delay.
func RoundTrips(t *testing.T, most float64, open func(*testing.T, time.Duration) (holder,
	waiter coordination.Store)) {
	t.Parallel()
	parts, ttls := []float64{0.05}, 2
	if *slowAll {
		parts, ttls = []float64{0.05, 0.1}, 10
	}
	for _, part := range parts {
		if part > most {
			continue
		}
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			holder, waiter := open(t, time.Duration(part*float64(slowTTL)/2))
			slow(t, slowTTL, part, ttls, busy, holder, waiter)
		})
	}
}

// Slow lets a session hold leases, and another wait for them, while each call of the store takes
// that part of the TTL, for so many TTLs. No lease is lost. Then it ends the holder as a crash
// does. The other holds the leases after the TTL and four calls.
func Slow(t *testing.T, ttl time.Duration, part float64, ttls int, holder,
	waiter coordination.Store) {
	t.Helper()
	slow(t, ttl, part, ttls, few, holder, waiter)
}

// slow is Slow with a bound for what a take-over may take beyond the TTL and four calls.
func slow(t *testing.T, ttl time.Duration, part float64, ttls int, beyond time.Duration, holder,
	waiter coordination.Store) {
	t.Helper()
	const leases = 20
	cfg := coordination.Config{TTL: ttl}
	a, b := sessionOf(t, holder, cfg), sessionOf(t, waiter, cfg)
	acquire(t, a, leases)
	all := wait(t, b, leases)
	time.Sleep(time.Duration(ttls) * ttl)
	if st := a.Status(); st.Held != leases || len(st.Lost) > 0 {
		t.Errorf("calls of %v TTL: %d of %d leases are held, lost %v", part, st.Held, leases,
			st.Lost)
		return
	}
	Crash(a)
	died := time.Now()
	all.Wait()
	took := time.Since(died).Round(10 * time.Millisecond)
	call := time.Duration(part * float64(ttl))
	t.Logf("calls of %v TTL (%v) for %d TTLs: no lease lost, %d taken over after %v", part, call,
		ttls, leases, took)
	if most := ttl*102/100 + 250*time.Millisecond + 4*call + beyond; took > most {
		t.Errorf("taken over after %v, want %v at most", took, most)
	}
	if st := b.Status(); st.Held != leases || len(st.Lost) > 0 {
		t.Errorf("%d of %d leases are held, lost %v", st.Held, leases, st.Lost)
	}
}
