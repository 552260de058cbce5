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
// with a record of its own takes at most takesOver. A count that is too high is made again, twice:
// the machine may have been busy.
func Trips(t *testing.T, open Opener, takesOver int) {
	t.Parallel()
	s, proxy := open(t)(t)
	if _, _, err := s.Load(t.Context(), "warm"); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(trip / 2)
	var over []string
	for try := range 3 {
		c := &counting{T: t, store: s, version: map[string]leasestore.Version{}}
		c.all(fmt.Sprint("lease", try), fmt.Sprint("TRIPSTRIPSTRIPSTRIPSTRIPSTRIP", try), takesOver)
		if over = c.over; len(over) == 0 {
			return
		}
	}
	t.Errorf("too many round trips three times: %v", over)
}

const trip = 600 * time.Millisecond

// counting is one count.
type counting struct {
	*testing.T
	store   coordination.Store
	version map[string]leasestore.Version
	over    []string // the calls that took too many
}

// all counts the round trips of the calls about one lease and the records of a nonce.
func (c *counting) all(lease, nonce string, takesOver int) {
	own := leasestore.SessionRecords + nonce
	of := func(token coordination.Token, attempt uint64) leasestore.Record {
		return leasestore.Record{Owner: "a", Nonce: nonce, Token: token, Attempt: attempt,
			TTL: 8 * time.Second}
	}
	c.load(3, "load, absent", lease)
	c.swap(5, "session record, claimed", own, of(1, 1))
	for i := range uint64(4) {
		c.swap(1, fmt.Sprint("session record, renewal ", i+1), own, of(1, i+2))
		time.Sleep(time.Second)
	}
	c.load(1, "load, session record", own)
	_, _, _ = c.store.Load(c.Context(), lease)
	held := of(1<<40, 1)
	held.Session = 1
	c.swap(1, "lease, claimed", lease, held)
	c.load(1, "load, held", lease)
	c.swap(1, "lease, released", lease, leasestore.Record{Token: 1 << 40})
	c.load(1, "load, free", lease)
	held.Token++
	c.swap(1, "lease, claimed again", lease, held)
	held.Attempt, held.Nonce, held.Session, held.Token = 1, nonce+"B", 0, held.Token+1
	c.swap(takesOver, "lease, taken over", lease, held)
	if w, able := c.store.(leasestore.Watcher); able {
		c.count(5, "watch, first report", func(ctx context.Context) error {
			for _, err := range w.Watch(ctx, lease) {
				return err
			}
			return nil
		})
	}
}

func (c *counting) load(most int, what, name string) {
	c.Helper()
	c.count(most, what, func(ctx context.Context) error {
		_, _, err := c.store.Load(ctx, name)
		return err
	})
}

func (c *counting) swap(most int, what, name string, next leasestore.Record) {
	c.Helper()
	c.count(most, what, func(ctx context.Context) (err error) {
		c.version[name], err = c.store.Swap(ctx, name, c.version[name], next)
		return err
	})
}

func (c *counting) count(most int, what string, do func(ctx context.Context) error) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 30*time.Second)
	defer cancel()
	begun := time.Now()
	if err := do(ctx); err != nil {
		c.Errorf("%s: %v", what, err)
	}
	took := time.Since(begun)
	n := int(took / trip)
	c.Logf("%-28s %d round trips (%v)", what, n, took.Round(time.Millisecond))
	if n > most {
		c.over = append(c.over, what)
	}
}
