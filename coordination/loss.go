package coordination

import (
	"errors"
	"log/slog"

	"github.com/concord-go/concord/coordination/internal/core"
)

// OnLost runs f, in its own goroutine, each time the session loses its record, and with it every lease
// that it held at that moment: one notice for all, where Grant.OnLost is one for each. The contexts of
// their grants have ended by then, and each has Config.Drain to finish its work, as after any loss. The
// session begins a new record by itself; leases have to be acquired again.
//
// f is not called for what Close ends, and never by a session whose leases are renewed or kept one by one:
// with Config.Forever, or if the store is no SessionKeeper. Any number of functions may be registered; stop
// withdraws f, as often as it is called. A panic in f is logged and hurts nobody else. f may call anything
// here.
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

// lostAll tells of the end of a tenure of the session record.
func (s *Session) lostAll(ev core.Unbacked) {
	lost, ok := errors.AsType[*LostError](endingOf(core.End{Token: ev.Token, Why: ev.Why, Err: ev.Err}).err)
	if !ok || ev.Why == core.Closed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.mu.losses {
		go s.contain(slog.String("of", "session"), func() { (*f)(lost) })
	}
}

// Failing reports whether the store does not answer so long that leases are near expiry, as
// Grant.OnNearExpiry tells, or have expired: true until the store has answered. One call that fails, or
// several that are repeated in time, are not enough. A session that has never held anything is not failing.
// It asks nobody and does not allocate.
func (s *Session) Failing() bool {
	s.stats.Lock()
	defer s.stats.Unlock()
	return s.stats.near || s.stats.expired || s.stats.status.NearExpiry > 0
}

// stand changes what is known of the store's answers.
func (s *Session) stand(change func(*stats)) {
	s.stats.Lock()
	defer s.stats.Unlock()
	change(&s.stats)
}
