package coordination_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/settings"
)

// logged is a log.
type logged struct{ child.Screen }

func (l *logged) count(text string) int { return strings.Count(l.String(), text) }

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
		s.that(log.count("level=WARN") == 1 &&
			log.count(`level=INFO msg="lease session ended"`) == 1 &&
			log.count(`level=WARN msg="the lease store does not answer"`) == 1 &&
			log.count(" leases=100 ") == 2, "%v", log.String())
		s.that(log.count(`level=INFO msg="lease ended"`) == 8 && log.count("\n") == 10,
			"%d lines", log.count("\n"))
		s.store.away.Store(false)

		_, err = session.Lease("alone").Acquire(s.Context())
		s.that(err == nil, "%v", err)
		s.that(log.count(`level=INFO msg="the lease store answers again"`) == 1 &&
			log.count(" after=1m") == 1, "%v", log.String())
		s.store.away.Store(true)
		s.sleep(time.Minute)
		s.that(log.count("lease=alone ") == 1 && log.count(" leases=1 ") == 2,
			"%d lines", log.count("\n"))
		s.store.away.Store(false)
		_ = session.Close(s.Context())
	})
}

// A session without leases said nothing about a store that does not answer: each component that
// waited for a lease said so.
func TestLog_AStoreThatDoesNotAnswerAtTheStartIsALine(t *testing.T) {
	onStage(t, func(s *stage) {
		var log logged
		session, err := coordination.Open(s.store, coordination.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.that(err == nil, "%v", err)
		s.store.away.Store(true)
		ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		_, err = session.Lease("alone").Acquire(ctx)
		s.that(err != nil, "acquired")
		s.that(log.count(`level=WARN msg="the lease store does not answer"`) == 1 &&
			log.count("\n") == 1, "%v", log.String())
		s.store.away.Store(false)
		_, err = session.Lease("alone").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		s.that(log.count(`level=INFO msg="the lease store answers again"`) == 1 &&
			log.count("\n") == 2, "%v", log.String())
		_ = session.Close(s.Context())
	})
}

// A store that answers reads alone, as with a full disk, was said to answer again with each read,
// also after all leases had ended.
func TestLog_AStoreThatRefusesWritesIsALine(t *testing.T) {
	onStage(t, func(s *stage) {
		var log logged
		session, err := coordination.Open(s.store, coordination.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.that(err == nil, "%v", err)
		lease := session.Lease("alone")
		_, err = lease.TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		s.store.refuses.Store(true)
		s.sleep(session.TTL())
		again := make(chan error, 1)
		go func() {
			_, err := lease.Acquire(s.Context())
			again <- err
		}()
		for range 600 {
			s.that(session.Failing(), "not failing")
			s.sleep(100 * time.Millisecond)
		}
		s.that(log.count(`msg="the lease store refuses writes"`) == 1 &&
			log.count(`check="its free space`) == 1 &&
			log.count("level=WARN") == 1 && log.count("answers again") == 0, "%v", log.String())
		s.store.refuses.Store(false)
		s.that(<-again == nil && !session.Failing(), "failing")
		s.that(log.count(`level=INFO msg="the lease store answers again"`) == 1, "%v", log.String())
		_ = session.Close(s.Context())
	})
}

// When reads have failed too, the first that is answered shows that the store is back.
func TestLog_AReadEndsAnOutageOfReads(t *testing.T) {
	onStage(t, func(s *stage) {
		session, err := coordination.Open(unwatched{s.store}, coordination.Config{})
		s.that(err == nil, "%v", err)
		_, err = session.Lease("alone").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		s.store.away.Store(true)
		s.sleep(session.TTL())
		_, err = session.Lease("alone").Holder(s.Context())
		s.that(err != nil && session.Failing(), "not failing: %v", err)
		s.store.away.Store(false)
		s.store.refuses.Store(true)
		_, err = session.Lease("alone").Holder(s.Context())
		s.that(err == nil && !session.Failing(), "failing: %v", err)
		_ = session.Close(s.Context())
	})
}

// When nobody wants to write any more, reads show that the store is there.
func TestLog_ReadsEndAnOutageWithoutWrites(t *testing.T) {
	onStage(t, func(s *stage) {
		var log logged
		session, err := coordination.Open(unwatched{s.store}, coordination.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.that(err == nil, "%v", err)
		s.store.refuses.Store(true)
		ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second)
		defer cancel()
		_, err = session.Lease("alone").Acquire(ctx)
		s.that(err != nil, "acquired")
		s.that(log.count("level=WARN") == 1, "%v", log.String())
		for range 20 {
			s.sleep(time.Second)
			_, err = session.Lease("alone").Holder(s.Context())
			s.that(err == nil, "%v", err)
		}
		s.that(log.count("level=WARN") == 1 && log.count(`msg="the lease store answers again"`) == 1 &&
			log.count("\n") == 2, "%v", log.String())
		_ = session.Close(s.Context())
	})
}

// A store that answered just within the limit was silent until leases were lost.
func TestLog_AStoreThatBecomesSlowIsALine(t *testing.T) {
	onStage(t, func(s *stage) {
		var log logged
		session, err := coordination.Open(s.store, coordination.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.that(err == nil, "%v", err)
		_, err = session.Lease("alone").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		s.sleep(time.Minute)
		s.that(log.String() == "", "%v", log.String())
		s.store.delay.Store(int64(2 * time.Second))
		s.sleep(time.Minute)
		for range 5 { // a store that is slow now and then
			s.store.delay.Store(0)
			s.sleep(40 * time.Second)
			s.store.delay.Store(int64(2 * time.Second))
			s.sleep(20 * time.Second)
		}
		s.that(log.count(`level=WARN msg="the lease store is slow"`) == 1 &&
			log.count("\n") == 1, "%v", log.String())
		s.store.delay.Store(0)
		s.sleep(2 * time.Minute)
		s.that(log.count(`level=INFO msg="the lease store is no longer slow"`) == 1 &&
			log.count("\n") == 2, "%v", log.String())
		_ = session.Close(s.Context())
	})
}

// asking is a handler of the log that asks the session for its status.
type asking struct {
	slog.Handler
	session *coordination.Session
	held    int
}

func (a *asking) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "the lease store does not answer" {
		a.held = a.session.Status().Held
	}
	return a.Handler.Handle(ctx, r)
}

// Lines about the store were logged under the lock of the session's statistics: a handler of the
// application that needed it stopped the session.
func TestLog_AHandlerMayAskTheSession(t *testing.T) {
	onStage(t, func(s *stage) {
		log := &asking{Handler: slog.NewTextHandler(new(logged), nil)}
		session, err := coordination.Open(s.store, coordination.Config{Logger: slog.New(log)})
		s.that(err == nil, "%v", err)
		log.session = session
		_, err = session.Lease("alone").TryAcquire(s.Context())
		s.that(err == nil, "%v", err)
		s.store.away.Store(true)
		s.sleep(time.Minute)
		s.that(log.held == 1, "the handler saw %d leases", log.held)
		s.store.away.Store(false)
		_ = session.Close(s.Context())
	})
}

// A TTL of 30 without a unit was accepted, and every lease was lost at once.
func TestConfig_ANumberWithoutAUnitIsNoTTL(t *testing.T) {
	for _, ttl := range []time.Duration{30, -time.Second} {
		err := settings.Check(coordination.Config{TTL: ttl})
		if !errors.Is(err, coordination.ErrInvalid) || err.Error() != fmt.Sprintf(
			"coordination: invalid argument: TTL (%v) must be at least 10ms", ttl) {
			t.Errorf("%v: %v", ttl, err)
		}
	}
	err := settings.Check(coordination.Config{TTL: 30, LockDelay: -1})
	if err == nil || !strings.Contains(err.Error(), "LockDelay (-1ns)") {
		t.Errorf("not every problem is reported: %v", err)
	}
	if err := settings.Check(coordination.Config{TTL: 10 * time.Millisecond}); err != nil {
		t.Error(err)
	}
}

// silent is a store that does not answer.
type silent struct{ memory.Store }

func (silent) Load(ctx context.Context, _ string) (leasestore.Record, leasestore.Version, error) {
	<-ctx.Done()
	return leasestore.Record{}, "", ctx.Err()
}

// The reason for giving up was named twice if it was also that of the last call of the store.
func TestAcquire_NamesTheReasonOnce(t *testing.T) {
	onStage(t, func(s *stage) {
		session := s.open(silent{memory.New()})
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
		defer cancel()
		_, err := session.Lease("lease").Acquire(ctx)
		_ = session.Close(s.Context())
		s.that(errors.Is(err, context.DeadlineExceeded) &&
			errors.Is(err, coordination.ErrUnknown), "%v", err)
		s.that(strings.Count(err.Error(), context.DeadlineExceeded.Error()) == 1, "%v", err)
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
