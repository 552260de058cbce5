package singleton

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Place is where the instance is.
type Place struct {
	Address string             // of the member's actor system
	Token   coordination.Token // of the tenure
	Since   time.Time          // when this member learned of it, by its wall clock
}

// located is a place and whether the instance is still there.
type located struct {
	Place
	now bool
}

// whereabouts is what this process knows of the place of the instance, over all lives.
type whereabouts struct {
	mu struct {
		sync.Mutex
		last located
		turn chan struct{} // closed, and made anew, when last changes; nil: nobody has asked
	}
}

// get returns what is known, and a channel that is closed when that changes.
func (w *whereabouts) get() (located, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mu.turn == nil {
		w.mu.turn = make(chan struct{})
	}
	return w.mu.last, w.mu.turn
}

// change changes what is known, and tells those who wait.
func (w *whereabouts) change(f func(*located)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.mu.last
	if f(&w.mu.last); w.mu.last != before && w.mu.turn != nil {
		close(w.mu.turn)
		w.mu.turn = nil
	}
}

func (w *whereabouts) found(address string, token coordination.Token) {
	w.change(func(l *located) {
		if !l.now || l.Address != address || l.Token != token {
			*l = located{Place{address, token, time.Now()}, true}
		}
	})
}

func (w *whereabouts) hidden() { w.change(func(l *located) { l.now = false }) }

// Where tells where the instance is, as far as this member knows, for people and dashboards: it may have
// moved. false: it is not known where it is now; the place is then the last one known, if any.
func (s *Singleton) Where() (Place, bool) {
	l, _ := s.place.get()
	return l.Place, l.now
}

// Watch yields what Where returns, now and after each change, until ctx ends: for people, dashboards and
// caches, not for decisions that need a lease. A slow reader skips changes, never the last one. It goes on
// between two lives of the member, and after Close, when nothing changes any more.
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
