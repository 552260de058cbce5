package ask

import (
	"context"
	"errors"
	"sync"
)

// ErrGone is the cause of a call that no member will answer, because the host to which its message
// was sent is gone.
var ErrGone = errors.New("the host to which the message was sent is gone")

// Calls are the pending calls of a component: as many as there are goroutines that wait. P says to
// which place a message was sent. The zero value has no calls.
type Calls[P any] struct {
	mu struct {
		sync.Mutex
		open  map[*Call[P]]struct{}
		ended bool
	}
}

// Call is one pending call.
type Call[P any] struct {
	cancel context.CancelCauseFunc
	place  P
	sent   bool // to place
}

// Begin begins a call, which the caller must end with End. The context ends when there will be no
// answer. It returns false after Close.
func (cs *Calls[P]) Begin(ctx context.Context) (context.Context, *Call[P], bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Call[P]{cancel: cancel}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.mu.ended {
		cancel(nil)
		return ctx, c, false
	}
	if cs.mu.open == nil {
		cs.mu.open = map[*Call[P]]struct{}{}
	}
	cs.mu.open[c] = struct{}{}
	return ctx, c, true
}

// End ends a call.
func (cs *Calls[P]) End(c *Call[P]) {
	cs.mu.Lock()
	delete(cs.mu.open, c)
	cs.mu.Unlock()
	c.cancel(nil)
}

// Sent records that the message of a call goes to a place. A nil call is no call.
func (cs *Calls[P]) Sent(c *Call[P], to P) {
	if c == nil {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.place, c.sent = to, true
}

// Lose fails, with ErrGone, the calls that were sent to places that will not answer.
func (cs *Calls[P]) Lose(gone func(P) bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.mu.open {
		if c.sent && gone(c.place) {
			c.cancel(ErrGone)
		}
	}
}

// Close fails all calls: with ErrGone those that were sent, and with the given error the others. No
// further call begins.
func (cs *Calls[P]) Close(unsent error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.mu.ended = true
	for c := range cs.mu.open {
		if c.sent {
			c.cancel(ErrGone)
		} else {
			c.cancel(unsent)
		}
	}
}
