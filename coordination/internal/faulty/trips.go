package faulty

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Trips counts the round trips of calls of a store, by the time that they take while each way takes
// long. The calls of a session that holds leases, or waits for them, take one; taking over a lease
// with a record of its own takes at most takesOver.
func Trips(t *testing.T, open Opener, takesOver int) {
	t.Parallel()
	const trip = 600 * time.Millisecond
	s, proxy := open(t)(t)
	if _, _, err := s.Load(t.Context(), "warm"); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(trip / 2)
	measure := func(what string, do func(ctx context.Context) error) time.Duration {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		begun := time.Now()
		if err := do(ctx); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		took := time.Since(begun)
		t.Logf("%-28s %d round trips (%v)", what, took/trip, took.Round(time.Millisecond))
		return took
	}
	count := func(most time.Duration, what string, do func(ctx context.Context) error) {
		t.Helper()
		if measure(what, do)/trip > most {
			t.Errorf("%s takes more than %d", what, most)
		}
	}
	version := map[string]leasestore.Version{}
	load := func(most time.Duration, what, name string) {
		t.Helper()
		for range 3 { // the server may have closed the connection, or the machine been busy
			if measure(what, func(ctx context.Context) error {
				_, _, err := s.Load(ctx, name)
				return err
			})/trip <= most {
				return
			}
		}
		t.Errorf("%s takes more than %d, three times", what, most)
	}
	swap := func(name string, next leasestore.Record) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			version[name], err = s.Swap(ctx, name, version[name], next)
			return err
		}
	}
	const nonce = "TRIPSTRIPSTRIPSTRIPSTRIPSTRIPS"
	own := leasestore.SessionRecords + nonce
	of := func(token coordination.Token, attempt uint64) leasestore.Record {
		return leasestore.Record{Owner: "a", Nonce: nonce, Token: token, Attempt: attempt,
			TTL: 8 * time.Second}
	}
	load(3, "load, absent", "lease")
	count(5, "session record, claimed", swap(own, of(1, 1)))
	for i := range uint64(4) {
		count(1, fmt.Sprint("session record, renewal ", i+1), swap(own, of(1, i+2)))
		time.Sleep(time.Second)
	}
	load(1, "load, session record", own)
	_, _, _ = s.Load(t.Context(), "lease")
	held := of(1<<40, 1)
	held.Session = 1
	count(1, "lease, claimed", swap("lease", held))
	load(1, "load, held", "lease")
	count(1, "lease, released", swap("lease", leasestore.Record{Token: 1 << 40}))
	load(1, "load, free", "lease")
	held.Token++
	count(1, "lease, claimed again", swap("lease", held))
	held.Attempt, held.Nonce, held.Session, held.Token = 1, nonce+"B", 0, held.Token+1
	count(time.Duration(takesOver), "lease, taken over", swap("lease", held))
	if w, able := s.(leasestore.Watcher); able {
		count(5, "watch, first report", func(ctx context.Context) error {
			for _, err := range w.Watch(ctx, "lease") {
				return err
			}
			return nil
		})
	}
}
