package faulty

import (
	"context"
	"flag"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

var (
	slowParts = flag.String("slow-parts", "0.2", "round trips of several parts of the TTL")
	slowTTLs  = flag.Int("slow-ttls", 2, "how many TTLs they take that long")
	slowTrace = flag.Bool("slow-trace", false, "log the calls of sessions on slow stores")
	slowTTL   = flag.Duration("slow-ttl", 4*time.Second, "TTL of the sessions on slow stores")
)

// RoundTrips runs Slow on two stores between which and their server each round trip takes a fifth
// of the TTL, or the parts of it that the flags say.
func RoundTrips(t *testing.T, open Opener) {
	t.Parallel()
	for name := range strings.SplitSeq(*slowParts, ",") {
		part, err := strconv.ParseFloat(name, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			delayed := func() coordination.Store {
				s, proxy := store(t)
				proxy.Delay(time.Duration(part * float64(*slowTTL) / 2))
				return s
			}
			slow(t, *slowTTL, part, *slowTTLs, busy, delayed(), delayed())
		})
	}
}

// Slow lets a session hold leases, and another wait for them, while each call of the store takes
// that part of the TTL, for so many TTLs. No lease is lost. Then it ends the holder as a crash
// does. The other holds the leases after the TTL and four calls.
func Slow(t *testing.T, ttl time.Duration, part float64, ttls int, holder,
	waiter coordination.Store) {
	t.Helper()
	slow(t, ttl, part, ttls, gathers, holder, waiter)
}

// gathers is the time in which a session gathers swaps for a call.
const gathers = 150 * time.Millisecond

// slow is Slow with a bound for what a take-over may take beyond the TTL and four calls.
func slow(t *testing.T, ttl time.Duration, part float64, ttls int, beyond time.Duration, holder,
	waiter coordination.Store) {
	t.Helper()
	const leases = 20
	if *slowTrace {
		holder, waiter = traced(t, "holder", holder), traced(t, "waiter", waiter)
	}
	cfg := coordination.Config{TTL: ttl}
	a, b := sessionOf(t, holder, cfg), sessionOf(t, waiter, cfg)
	begun := time.Now()
	acquire(t, a, leases)
	acquired := time.Since(begun).Round(10 * time.Millisecond)
	all := wait(t, b, leases)
	for range ttls {
		time.Sleep(ttl / 2)
		impatient(t, a, ttl/20)
		time.Sleep(ttl / 2)
	}
	if st := a.Status(); st.Held != leases || len(st.Lost) > 0 {
		t.Errorf("calls of %v TTL: %d of %d leases are held, lost %v", part, st.Held, leases,
			st.Lost)
		return
	}
	Crash(a)
	died := time.Now()
	t.Logf("the holder ends %.2f s after its beginning", time.Since(begun).Seconds())
	all.Wait()
	took := time.Since(died).Round(10 * time.Millisecond)
	call := time.Duration(part * float64(ttl))
	t.Logf("calls of %v TTL (%v): %d leases acquired in %v, none lost in %d TTLs, taken over after %v",
		part, call, leases, acquired, ttls, took)
	if most := ttl*102/100 + 250*time.Millisecond + 4*call + beyond; took > most {
		t.Errorf("taken over after %v, want %v at most", took, most)
	}
	if st := b.Status(); st.Held != leases || len(st.Lost) > 0 {
		t.Errorf("%d of %d leases are held, lost %v", st.Held, leases, st.Lost)
	}
}

// impatient calls the session as a probe does that gives up sooner than the store answers. That
// must not make a slow connection look silent.
func impatient(t *testing.T, s *coordination.Session, within time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, _ = s.Lease("lease0").Holder(ctx)
}
