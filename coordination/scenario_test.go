package coordination_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// These scenarios are bugs that users of other lease modules have met. Most of them are rules of
// testkit/leasetest, which every store must pass.

// stale is how long after its first sight a record of a stage may be taken: TTL·(1+ρ) + margin.
const stale = 30*time.Second*101/100 + 600*time.Millisecond

// acquireWithin acquires the lease, and returns how long that took.
func (s *stage) acquireWithin(l *coordination.Lease, d time.Duration) (*coordination.Grant,
	time.Duration) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), d)
	defer cancel()
	begin := time.Now()
	g, err := l.Acquire(ctx)
	if err != nil {
		s.Fatalf("after %v: %v", time.Since(begin), err)
	}
	return g, time.Since(begin)
}

// akka.net management 2383: the expiry was kept as milliseconds since midnight, so after midnight
// the lease of a crashed holder could not be taken until the next day.
// Seen in akka.net management 2383, 2474.
func TestScenario_CrashBeforeMidnightIsTakenOver(t *testing.T) {
	onStage(t, func(s *stage) {
		now := time.Now()
		midnight := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, now.Location())
		s.sleep(midnight.Sub(now) - 5*time.Second)
		s.acquireWithin(s.a.Lease("lease"), time.Second)
		s.store.away.Store(true) // the holder is silent from here on
		_, took := s.acquireWithin(s.b.Lease("lease"), time.Minute)
		s.that(time.Now().After(midnight), "before midnight")
		s.that(took >= 29*time.Second && took <= stale+time.Second,
			"taken over after %v, want about %v", took, stale)
	})
}

// akka management 910, akka 32122, 29837, 30024, 31925: names that differed in a truncated part, in
// case or in unusual characters shared one lease, or were rejected by the store.
// Seen in akka 29837, 30024, 31925, 32122, akka management 811, 852, 910, 1194, pekko management
// 708.
func TestScenario_NamesThatLookAlikeAreDifferentLeases(t *testing.T) {
	onStage(t, func(s *stage) {
		long := strings.Repeat("x", 80)
		names := []string{long + "1", long + "2", "My_App", "my-app", "my_app", "my.app", "/user/a",
			"user/a", "a b", "a%20b", "ä"}
		for _, name := range names {
			if _, err := s.a.Lease(name).TryAcquire(s.Context()); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		for _, name := range names {
			if _, err := s.b.Lease(name).TryAcquire(s.Context()); !errors.Is(err,
				coordination.ErrHeld) {
				t.Errorf("%q, held by the other session: %v", name, err)
			}
		}
	})
}

// pekko management 543, akka.net management 3397: a store that did not answer was mistaken for
// "held by another", on all members at once.
func TestScenario_MissingStoreIsNotATakenLease(t *testing.T) {
	onStage(t, func(s *stage) {
		s.store.away.Store(true)
		_, err := s.a.Lease("lease").TryAcquire(s.Context())
		s.that(errors.Is(err, coordination.ErrUnknown) && !errors.Is(err, coordination.ErrHeld),
			"got %v", err)
		s.that(errors.Is(err, errAway), "the cause is not told: %v", err)
	})
}

// akka.net management 2890: the first answer was kept forever: a lost lease was still reported as
// held, and a lease that had been held by another once could never be acquired.
func TestScenario_TheFirstAnswerIsNotTheLast(t *testing.T) {
	onStage(t, func(s *stage) {
		lease := s.a.Lease("lease")
		other, _ := s.acquireWithin(s.b.Lease("lease"), time.Second)
		_, err := lease.TryAcquire(s.Context())
		s.that(errors.Is(err, coordination.ErrHeld), "got %v", err)
		s.that(other.Release(s.Context()) == nil, "not released")
		g, _ := s.acquireWithin(lease, time.Second)
		s.store.away.Store(true)
		s.sleep(time.Minute)
		s.that(errors.Is(g.Check(), coordination.ErrLost), "lost, and told to be held: %v",
			g.Check())
		_, err = lease.TryAcquire(s.Context())
		s.that(errors.Is(err, coordination.ErrUnknown), "acquired from a store that is away: %v",
			err)
	})
}

// akka management 1440, akka.net management 3404: one failed renewal lost the lease, and everything
// that depended on it was down for a minute and a half.
// Seen in akka management 910, 1440, 1441, 1444, akka.net management 3404 to 3407, 3418, pekko
// management 911.
func TestScenario_OneHiccupDoesNotLoseTheLease(t *testing.T) {
	onStage(t, func(s *stage) {
		g, _ := s.acquireWithin(s.a.Lease("lease"), time.Second)
		for range 20 {
			s.sleep(20 * time.Second)
			s.store.away.Store(true)
			s.sleep(11 * time.Second) // one renewal and its first repetitions
			s.store.away.Store(false)
			if err := g.Check(); err != nil {
				s.Fatal(err)
			}
		}
	})
}

// actor-ts 598: a record with an absurd duration, written by a broken peer, pinned the lease for
// decades.
// Seen in actor-ts 596, 598.
func TestScenario_AnAbsurdRecordBlocksForADayAtMost(t *testing.T) {
	onStage(t, func(s *stage) {
		absurd := leasestore.Record{Owner: "broken", Nonce: "n", Token: 7,
			TTL: 100 * 365 * 24 * time.Hour}
		if _, err := s.store.Swap(s.Context(), "lease", "", absurd); err != nil {
			t.Fatal(err)
		}
		g, took := s.acquireWithin(s.b.Lease("lease"), 25*time.Hour)
		s.that(took >= 24*time.Hour, "taken after %v", took)
		s.that(g.Token() > 7, "token %v", g.Token())
	})
}
