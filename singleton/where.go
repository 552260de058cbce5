package singleton

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Place is the location of the instance.
type Place struct {
	Address string             // of the member's actor system
	Token   coordination.Token // of the tenure
	Since   time.Time          // when this member learned of it, by its wall clock
	// TakeOver is how long this member knew no place before it learned of this one. It is 0 if it
	// knew another place until then, and for the first place in this process.
	TakeOver time.Duration
}

// located is a place, and whether the instance is still known to be there.
type located struct {
	Place
	now   bool
	until time.Time // when this member stopped knowing the place; if not now
}

// locations is what this process knows about the place of the instance, over all incarnations.
type locations struct {
	mu struct {
		sync.Mutex
		last located
		turn chan struct{} // closed, and replaced, when last changes; nil: no waiter
	}
}

// get returns the last known place, and a channel that is closed when it changes.
func (w *locations) get() (located, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.turn == nil {
		w.mu.turn = make(chan struct{})
	}
	return w.mu.last, w.mu.turn
}

// change changes the place, and wakes the waiters.
func (w *locations) change(f func(*located)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.mu.last
	if f(&w.mu.last); w.mu.last != before && w.mu.turn != nil {
		close(w.mu.turn)
		w.mu.turn = nil
	}
}

func (w *locations) found(address string, token coordination.Token) {
	w.change(func(l *located) {
		if !l.now || l.Address != address || l.Token != token {
			next := located{Place: Place{Address: address, Token: token, Since: time.Now()},
				now: true}
			if !l.until.IsZero() {
				next.TakeOver = max(0, next.Since.Sub(l.until))
			}
			*l = next
		}
	})
}

// hosted describes the instance if it was last known to be at one of these members.
func (l *binding) hosted(addresses []string) string {
	if at, _ := l.place.get(); slices.Contains(addresses, at.Address) {
		return "singleton " + l.cfg.Name
	}
	return ""
}

func (w *locations) hidden() {
	w.change(func(l *located) {
		if l.now {
			l.now, l.until = false, time.Now()
		}
	})
}

// Where returns the place of the instance as far as this member knows it, for people and
// dashboards: the instance may have moved. false means that the present place is unknown; the
// result is then the last known place, if any.
func (s *Singleton) Where() (Place, bool) {
	l, _ := s.place.get()
	return l.Place, l.now
}

// Watch yields the result of Where, now and after each change, until ctx ends. It is meant for
// people, dashboards and caches, not for decisions that need a lease. A slow reader skips changes,
// but never the last one. The sequence continues while the member rejoins, and after Close, when
// there are no more changes.
func (s *Singleton) Watch(ctx context.Context) iter.Seq2[Place, bool] {
	return func(yield func(Place, bool) bool) {
		for ctx.Err() == nil {
			l, turn := s.place.get()
			if !yield(l.Place, l.now) {
				return
			}
			select {
			case <-turn:
			case <-ctx.Done():
			}
		}
	}
}
