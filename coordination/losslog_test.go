package coordination_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

// logged is a log that several goroutines write to.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// An outage ends all leases of a session at once: with 256 shards these were 257 lines, of which
// none said that they were one event.
func TestLog_TheLossOfManyLeasesIsAFewLines(t *testing.T) {
	onStage(t, func(s *stage) {
		var log logged
		session, err := coordination.Open(s.store, coordination.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil))}) // from Info
		s.that(err == nil, "%v", err)
		for i := range 100 {
			_, err := session.Lease(fmt.Sprint("lease-", i)).TryAcquire(s.Context())
			s.that(err == nil, "%v", err)
		}
		s.store.away.Store(true)
		s.sleep(time.Minute)
		s.that(log.count(`level=WARN msg="lease session ended"`) == 1 &&
			log.count(" leases=100 ") == 1, "%d lines", log.count("\n"))
		s.that(log.count(`level=WARN msg="lease ended"`) == 8 && log.count("\n") == 9,
			"%d lines", log.count("\n"))
		s.store.away.Store(false)

		_, err = session.Lease("alone").Acquire(s.Context())
		s.that(err == nil, "%v", err)
		s.store.away.Store(true)
		s.sleep(time.Minute)
		s.that(log.count("lease=alone ") == 1 && log.count(" leases=1 ") == 1,
			"%d lines", log.count("\n"))
		s.store.away.Store(false)
		_ = session.Close(s.Context())
	})
}

// A program without a lease store has no session, and its first call said only that a pointer was
// nil.
func TestLease_OfANilSession(t *testing.T) {
	onStage(t, func(s *stage) {
		var none *coordination.Session
		lease := none.Lease("billing")
		ctx := s.Context()
		_, tried := lease.TryAcquire(ctx)
		_, acquired := lease.Acquire(ctx)
		_, read := lease.Holder(ctx)
		var follow error
		for _, err := range lease.Holders(ctx) {
			follow = err
		}
		for _, err := range []error{tried, acquired, read, follow,
			lease.Do(ctx, func(context.Context, *coordination.Grant) error { return nil }),
			lease.ForceRelease(ctx, 1)} {
			s.that(errors.Is(err, coordination.ErrInvalid) &&
				strings.Contains(err.Error(), `lease "billing": the session is nil`), "%v", err)
		}
		lease.Observe()()
		s.that(!lease.Forget(), "forgotten")
		err := s.a.Lease("billing").Do(ctx, nil)
		s.that(errors.Is(err, coordination.ErrInvalid), "%v", err)
		holder, err := s.a.Lease("billing").Holder(ctx)
		s.that(err == nil && holder.Token == 0, "acquired by a Do without work: %+v, %v", holder, err)
	})
}
