package coordination_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

// A record that is still there does not show that its holder is alive; a renewal does.
func TestRenewed_TellsALivingHolderFromARecord(t *testing.T) {
	for name, plain := range map[string]bool{"through a session record": false,
		"with a record for each lease": true} {
		t.Run(name, func(t *testing.T) {
			onStage(t, func(s *stage) {
				if plain {
					shared := memory.New()
					_, _ = s.a.Close(s.Context()), s.b.Close(s.Context())
					s.store = &flaky{Store: shared}
					s.a, s.b = s.open(struct{ coordination.Store }{s.store}),
						s.open(struct{ coordination.Store }{shared})
				}
				lease := s.b.Lease("lease")
				h, err := lease.Renewed(s.Context())
				s.that(err == nil && h.Session == "", "nobody: %v, %v", h, err)

				s.acquireWithin(s.a.Lease("lease"), time.Second)
				s.sleep(25 * time.Second)
				begun := time.Now()
				h, err = lease.Renewed(s.Context())
				took := time.Since(begun)
				s.that(err == nil && h.Session == s.a.ID(), "holder: %v, %v", h, err)
				s.that(took > 0 && took <= 12*time.Second, "seen after %v, it renews every 10 s",
					took)

				s.store.away.Store(true) // the holder is dead, and its record is there
				s.sleep(time.Second)
				in, cancel := context.WithTimeout(s.Context(), 15*time.Second)
				defer cancel()
				h, err = lease.Renewed(in)
				s.that(errors.Is(err, coordination.ErrUnknown) &&
					errors.Is(err, context.DeadlineExceeded), "dead: %v, %v", h, err)
			})
		})
	}
}

func TestRenewed_EndsWithARelease(t *testing.T) {
	onStage(t, func(s *stage) {
		grant, _ := s.acquireWithin(s.a.Lease("lease"), time.Second)
		released := time.AfterFunc(3500*time.Millisecond, func() {
			_ = grant.Release(context.Background())
		})
		defer released.Stop()
		h, err := s.b.Lease("lease").Renewed(s.Context())
		s.that(err == nil && h.Session == "" && h.Token == grant.Token(), "%v, %v", h, err)

		_, err = s.b.Lease("").Renewed(s.Context())
		s.that(errors.Is(err, coordination.ErrInvalid), "an invalid name: %v", err)
		s.acquireWithin(s.a.Lease("lease"), time.Second)
		time.AfterFunc(time.Second, func() { _ = s.b.Close(context.Background()) })
		_, err = s.b.Lease("lease").Renewed(s.Context())
		s.that(errors.Is(err, coordination.ErrClosed) && errors.Is(err, coordination.ErrUnknown),
			"closed: %v", err)
	})
}

// The store does not answer for a while.
func TestRenewed_OutlivesAnOutage(t *testing.T) {
	onStage(t, func(s *stage) {
		grant, _ := s.acquireWithin(s.b.Lease("lease"), time.Second)
		s.store.away.Store(true)
		time.AfterFunc(20*time.Second, func() { s.store.away.Store(false) })
		h, err := s.a.Lease("lease").Renewed(s.Context())
		s.that(err == nil && h.Token == grant.Token(), "%v, %v", h, err)
	})
}
