package coordination_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// counted counts the reads of a store. It implements only Store, so a session on it keeps no
// session record and cannot watch.
type counted struct {
	coordination.Store
	loads atomic.Int64
}

func (s *counted) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	s.loads.Add(1)
	return s.Store.Load(ctx, name)
}

// If a contender has observed the lease, or the session of its holder, the TTL runs before the
// contender notices the crash of the holder.
func TestObserve_TheWaitBeginsBeforeTheCrashIsNoticed(t *testing.T) {
	const noticed = 20 * time.Second
	for name, c := range map[string]struct {
		plain   bool // the store keeps no sessions and cannot watch
		observe func(contender, holder *coordination.Session) (stop func())
		late    time.Duration // upper bound, after the TTL
	}{
		"the lease": {observe: func(b, _ *coordination.Session) func() {
			return b.Lease("lease").Observe()
		}, late: time.Second},
		"the session": {observe: func(b, a *coordination.Session) func() {
			stop, err := b.Observe(a.ID())
			if err != nil {
				t.Error(err)
			}
			return stop
		}, late: time.Second},
		"without sessions and a watch": {plain: true, late: 6 * time.Second,
			observe: func(b, _ *coordination.Session) func() { return b.Lease("lease").Observe() }},
		"nothing": {observe: func(_, _ *coordination.Session) func() {
			return func() {}
		}, late: noticed + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(s *stage) {
				if c.plain {
					shared := memory.New()
					_, _ = s.a.Close(s.Context()), s.b.Close(s.Context())
					s.store = &flaky{Store: shared}
					s.a, s.b = s.open(struct{ coordination.Store }{s.store}),
						s.open(struct{ coordination.Store }{shared})
				}
				stop := c.observe(s.b, s.a)
				defer stop()
				s.acquireWithin(s.a.Lease("lease"), time.Second)
				s.sleep(47 * time.Second)
				s.store.away.Store(true)
				crashed := time.Now()
				s.sleep(noticed)
				s.acquireWithin(s.b.Lease("lease"), time.Minute)
				took := time.Since(crashed)
				s.that(took <= stale+c.late, "taken over %v after the crash", took)
				if c.late > noticed {
					s.that(took > stale+noticed-10*time.Second,
						"taken over %v after the crash: it need not be observed", took)
				}
			})
		})
	}
}

// After a crash of the holder of many leases, the session that takes them over reads the holder's
// session record once, not once for each lease.
func TestObserve_OneLookForAllLeasesOfASession(t *testing.T) {
	const leases = 200
	synctest.Test(t, func(t *testing.T) {
		st := memory.New()
		holder := &flaky{Store: st}
		a, err := coordination.Open(holder, times)
		if err != nil {
			t.Fatal(err)
		}
		count := &counted{Store: st}
		b, err := coordination.Open(&sessions{count}, times)
		if err != nil {
			t.Fatal(err)
		}
		for i := range leases {
			if _, err := a.Lease(fmt.Sprint("lease-", i)).TryAcquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		stop, err := b.Observe(a.ID())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		holder.away.Store(true)
		time.Sleep(stale + 6*time.Second)
		before := count.loads.Load()
		for i := range leases {
			if _, err := b.Lease(fmt.Sprint("lease-", i)).TryAcquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if reads := count.loads.Load() - before; reads > leases+3 {
			t.Errorf("%d reads for %d leases", reads, leases)
		}
		stop()
		stop()
		_ = a.Close(t.Context())
		_ = b.Close(t.Context())
		stop() // after Close
	})
}

// sessions is a store that keeps sessions and has no other optional ability.
type sessions struct{ *counted }

func (*sessions) KeepsSessions() bool { return true }

func TestObserve_BadInput(t *testing.T) {
	onStage(t, func(s *stage) {
		for _, id := range []string{"", strings.Repeat("x", 65)} {
			_, err := s.a.Observe(id)
			s.that(errors.Is(err, coordination.ErrInvalid), "%q: %v", id, err)
		}
		stop, err := s.a.Observe(s.a.ID())
		s.that(err == nil, "its own: %v", err)
		stop()
		s.a.Lease("").Observe()()
		stop, err = s.a.Observe("nobody")
		s.that(err == nil, "nobody: %v", err)
		s.sleep(10 * time.Minute)
		stop()
		_ = s.b.Close(s.Context())
		stop, err = s.b.Observe(s.a.ID())
		s.that(err == nil, "closed: %v", err)
		stop()
		s.b.Lease("lease").Observe()()
	})
}

// Observing a lease does not claim it, and Close of the observing session ends the observation.
func TestObserve_ClaimsNothing(t *testing.T) {
	onStage(t, func(s *stage) {
		stop := s.b.Lease("lease").Observe()
		s.sleep(time.Minute)
		g, _ := s.acquireWithin(s.a.Lease("lease"), time.Second)
		s.sleep(time.Minute)
		s.that(g.Release(s.Context()) == nil, "not released")
		s.sleep(time.Minute)
		h, err := s.a.Lease("lease").Holder(s.Context())
		s.that(err == nil && h.Owner == "", "held by %q (%v)", h.Owner, err)
		again := s.b.Lease("lease").Observe()
		stop()
		g, _ = s.acquireWithin(s.b.Lease("lease"), time.Second)
		s.that(g.Release(s.Context()) == nil, "not released")
		again()
	})
}
