package faulty

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

// busy is the time of more calls of a store than a take-over makes one after another, a new
// connection among them, where servers and tests share a busy machine.
const busy = 6 * time.Second

var silences = flag.Int("silences", 1, "how often the connections of a holder fall silent")

// Opener returns a function that opens stores with the same leases, as a configuration file does,
// each behind a proxy of its own.
type Opener func(*testing.T) func(*testing.T) (coordination.Store, *Proxy)

// opens is how long a new connection takes after a silence.
const opens = time.Second

// Silent lets a session hold leases, and its connections fall silent several times. New ones are
// slow. No lease is lost. Then it lets another session wait for them, ends the first one as a crash
// does, and lets the connections of the other fall silent at that moment. The other holds the
// leases after the TTL and a call that is not answered. All times are the defaults.
func Silent(t *testing.T, open Opener) {
	t.Helper()
	t.Parallel()
	const leases = 20
	store := open(t)
	holder, holders := store(t)
	waiter, waiters := store(t)
	if *slowTrace {
		holder, waiter = traced(t, "holder", holder), traced(t, "waiter", waiter)
	}
	a, b := session(t, holder), session(t, waiter)
	acquire(t, a, leases)
	holders.OpenIn(opens)
	waiters.OpenIn(opens)
	for range *silences {
		holders.Silence()
		time.Sleep(a.TTL() + a.TTL()/4)
		if st := a.Status(); st.Held != leases || len(st.Lost) > 0 {
			t.Errorf("%d of %d leases are held after a silence, lost %v", st.Held, leases, st.Lost)
			return
		}
	}
	all := wait(t, b, leases)
	time.Sleep(a.TTL() / 2)
	Crash(a)
	waiters.Silence()
	died := time.Now()
	all.Wait()
	took := time.Since(died).Round(10 * time.Millisecond)
	t.Logf("%d silences cost no lease; %d leases taken over in %v", *silences, leases, took)
	if most := a.TTL()*102/100 + 250*time.Millisecond + b.TTL()*3/10 + busy; took > most {
		t.Errorf("taken over after %v, want %v at most", took, most)
	}
	if st := b.Status(); st.Held != leases {
		t.Errorf("%d of %d leases are held", st.Held, leases)
	}
}

// Unnoticed lets a session wait for leases that another session holds, lets its connections fall
// silent, and releases the leases. The session acquires them within the time given, although no
// watch reports that.
func Unnoticed(t *testing.T, holder, waiter coordination.Store, proxy *Proxy,
	within time.Duration) {
	t.Helper()
	const leases = 100
	a, b := session(t, holder), session(t, waiter)
	acquire(t, a, leases)
	all := wait(t, b, leases)
	time.Sleep(a.TTL())
	proxy.Silence()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range leases {
		g, err := a.Lease(fmt.Sprint("lease", i)).TryAcquire(ctx) // the grant that it has
		if err == nil {
			err = g.Release(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	took := time.Since(begun).Round(10 * time.Millisecond)
	t.Logf("%d leases acquired %v after the release", leases, took)
	if st := b.Status(); st.Held != leases || took > within {
		t.Errorf("%d of %d leases acquired after %v, want all after %v", st.Held, leases, took,
			within)
	}
}

// session opens a session with default times, which ends as in a crash.
func session(t *testing.T, s coordination.Store) *coordination.Session {
	t.Helper()
	return sessionOf(t, s, coordination.Config{})
}

func sessionOf(t *testing.T, s coordination.Store,
	cfg coordination.Config) *coordination.Session {
	t.Helper()
	out, err := coordination.Open(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Crash(out) })
	return out
}

// Crash ends a session without a release.
func Crash(s *coordination.Session) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Close(ctx)
}

// acquire acquires n leases at the same time.
func acquire(t *testing.T, s *coordination.Session, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, errs[i] = s.Lease(fmt.Sprint("lease", i)).Acquire(ctx) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// wait begins to wait for n leases.
func wait(t *testing.T, s *coordination.Session, n int) *sync.WaitGroup {
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	for i := range n {
		all.Go(func() { _, _ = s.Lease(fmt.Sprint("lease", i)).Acquire(ctx) })
	}
	return &all
}
