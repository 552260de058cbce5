package coordination_test

import (
	"errors"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

func TestFailing_WithASessionRecord(t *testing.T) {
	onStage(t, func(s *stage) {
		g, err := s.a.Lease("lease").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		s.that(!s.a.Failing(), "failing at first")
		s.store.away.Store(true)
		s.sleep(12 * time.Second)
		s.that(!s.a.Failing(), "failing after one renewal that was missed")
		s.sleep(10 * time.Second)
		s.that(s.a.Failing(), "not failing near expiry")
		s.sleep(time.Minute)
		s.that(errors.Is(g.Check(), coordination.ErrLost) && s.a.Failing(),
			"not failing after expiry")
		s.store.away.Store(false)
		s.sleep(time.Minute)
		s.that(!s.a.Failing(), "failing although the store is back")
		_, err = s.a.Lease("lease").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
	})
}

// A session that has no lease, and acquires none because its calls fail, is failing.
func TestFailing_BeforeTheFirstLease(t *testing.T) {
	onStage(t, func(s *stage) {
		s.store.away.Store(true)
		acquired := make(chan error, 1)
		go func() {
			_, err := s.a.Lease("lease").Acquire(s.Context())
			acquired <- err
		}()
		s.sleep(s.a.TTL() / 3)
		s.that(!s.a.Failing(), "failing after a few calls")
		s.sleep(s.a.TTL() / 3)
		s.that(s.a.Failing(), "not failing")
		s.store.away.Store(false)
		s.that(<-acquired == nil && !s.a.Failing(), "failing although the store is back")
	})
}

// Without session records, a session is failing when one of its leases is near expiry.
func TestFailing_WithoutSessionRecords(t *testing.T) {
	onStage(t, func(s *stage) {
		shared := &flaky{Store: memory.New()}
		c := s.open(struct{ coordination.Store }{shared})
		g, err := c.Lease("lease").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		shared.away.Store(true)
		s.sleep(22 * time.Second)
		s.that(c.Failing(), "not failing near expiry")
		s.sleep(time.Minute)
		s.that(errors.Is(g.Check(), coordination.ErrLost) && c.Failing(),
			"not failing after expiry")
		shared.away.Store(false)
		_, err = c.Lease("lease").TryAcquire(s.Context())
		s.that(err == nil && !c.Failing(), "failing although the store is back (%v)", err)
		_ = c.Close(s.Context())
	})
}
