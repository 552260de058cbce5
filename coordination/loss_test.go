package coordination_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

func TestOnLost_OneNoticeForAllLeases(t *testing.T) {
	onStage(t, func(s *stage) {
		var mu sync.Mutex
		var told []error
		var grants []*coordination.Grant
		for i := range 100 {
			g, err := s.a.Lease(fmt.Sprint("lease-", i)).TryAcquire(s.Context())
			s.that(err == nil, "%v", err)
			grants = append(grants, g)
		}
		note := func(lost *coordination.LostError) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, lost)
			for _, g := range grants {
				s.that(g.Context().Err() != nil, "%v goes on", g)
			}
		}
		s.a.OnLost(note)
		s.a.OnLost(func(*coordination.LostError) { panic("a user") })
		withdrawn := s.a.OnLost(func(*coordination.LostError) { t.Error("withdrawn") })
		withdrawn()
		withdrawn()
		s.that(!s.a.Failing(), "failing at first")
		s.store.away.Store(true)
		s.sleep(12 * time.Second)
		s.that(!s.a.Failing(), "failing after one renewal that was missed")
		s.sleep(10 * time.Second)
		s.that(s.a.Failing(), "not failing near expiry")
		s.sleep(time.Minute)
		s.that(s.a.Failing(), "not failing after expiry")
		mu.Lock()
		s.that(len(told) == 1 && errors.Is(told[0], coordination.ErrLost), "told %v", told)
		mu.Unlock()
		s.store.away.Store(false)
		s.sleep(time.Minute)
		s.that(!s.a.Failing(), "failing although the store is back")
		_, err := s.a.Lease("lease-0").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		s.store.away.Store(true)
		s.sleep(time.Minute)
		mu.Lock()
		s.that(len(told) == 2, "told %v after a second loss", told)
		mu.Unlock()
		s.store.away.Store(false)
	})
}

// Without session records, a session is failing when one of its leases is near expiry.
func TestFailing_WithoutSessionRecords(t *testing.T) {
	onStage(t, func(s *stage) {
		shared := &flaky{Store: memory.New()}
		c := s.open(struct{ coordination.Store }{shared})
		c.OnLost(func(*coordination.LostError) { t.Error("told of a session that has no record") })
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
