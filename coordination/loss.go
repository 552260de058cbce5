package coordination

import (
	"errors"
	"log/slog"

	"github.com/concord-go/concord/coordination/internal/core"
	"time"
)

// OnLost runs f, in its own goroutine, each time the session loses its record, and with it every
// lease that it holds at that moment: one call for all of them, where Grant.OnLost runs once for
// each. By then the contexts of their grants have ended, and each has Config.Drain to finish its
// work, as after any loss. The session begins a new record by itself; leases must be acquired
// again.
//
// f does not run when Close ends the session. It never runs for a session whose leases are renewed
// or kept individually: with Config.Forever, or if the store is not a leasestore.SessionKeeper. Any
// number of functions may be registered. stop unregisters f and may be called more than once. A
// panic in f is logged and affects nothing else. f may call any function of this package.
func (s *Session) OnLost(f func(*LostError)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.losses == nil {
		s.mu.losses = map[*func(*LostError)]struct{}{}
	}
	s.mu.losses[&f] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.losses, &f)
	}
}

// lostAll reports the end of a tenure of the session record to the handlers of OnLost.
func (s *Session) lostAll(ev core.Unbacked) {
	lost, ok := errors.AsType[*LostError](
		endingOf(core.End{Token: ev.Token, Why: ev.Why, Err: ev.Err}).err)
	if !ok || ev.Why == core.Closed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.mu.losses {
		go s.contain(slog.String("of", "session"), func() { (*f)(lost) })
	}
}

// Failing reports whether the store has not answered for so long that leases are near expiry, in
// the sense of Grant.OnNearExpiry, or have expired. It stays true until the store answers. One
// failed call, or several that are repeated in time, are not enough. A session that has never held
// a lease is not failing. Failing does no I/O and does not allocate.
func (s *Session) Failing() bool {
	s.stats.Lock()
	defer s.stats.Unlock()
	return s.stats.failing()
}

func (st *stats) failing() bool { return st.near || st.expired || st.status.NearExpiry > 0 }

// stand changes what is known about the store's answers.
func (s *Session) stand(change func(*stats)) {
	s.learn(s.clock.Read().Mono, change)
}

// learn changes what is known about the store's answers at a time, and logs what is new in that.
func (s *Session) learn(now time.Duration, change func(*stats)) {
	s.stats.Lock()
	change(&s.stats)
	lines := s.stats.news(now, s.cfg.OperationTimeout, s.cfg.TTL)
	s.stats.Unlock()
	s.tell(lines)
}
