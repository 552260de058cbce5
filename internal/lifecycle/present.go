package lifecycle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Present is the life behind a handle: the present one, and none between two lives and after the last. Make it with
// NewPresent. Its methods may be called from any goroutine.
//
// A replicator does not use it: its lock also covers the ledger that a life hands on to the next, and its life stays
// present until its actor has stopped.
type Present[L any] struct {
	handle string
	closed error
	life   atomic.Pointer[L]

	mu struct {
		sync.Mutex
		turn chan struct{} // closed, and made anew, when life or last changes
		last bool          // no other life follows
		err  error         // of the last Drop
	}
}

// NewPresent returns a Present without a life. handle begins the errors of After; closed is its error when no life
// follows.
func NewPresent[L any](handle string, closed error) *Present[L] {
	p := &Present[L]{handle: handle, closed: closed}
	p.mu.turn = make(chan struct{})
	return p
}

// Load returns the present life, nil if there is none.
func (p *Present[L]) Load() *L { return p.life.Load() }

// Begin makes l the present life. last says that no other follows.
func (p *Present[L]) Begin(l *L, last bool) {
	p.change(func() {
		p.life.Store(l)
		p.mu.last = last
	})
}

// Last says that no life follows the present one: After waits no longer. Begin takes it back.
func (p *Present[L]) Last() {
	p.change(func() { p.mu.last = true })
}

// Drop forgets l, which has ended with err, if it is the present life. An actor system takes some megabytes, and a
// handle that kept it would keep them.
func (p *Present[L]) Drop(l *L, err error) {
	p.change(func() {
		if p.life.CompareAndSwap(l, nil) {
			p.mu.err = err
		}
	})
}

// Err returns the error of the last Drop that took effect.
func (p *Present[L]) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.err
}

// After returns the present life if it is another one than l, or waits for it. The error is that of NewPresent if no
// life follows, and wraps ErrBetweenLives and the cause of ctx if that ends first.
func (p *Present[L]) After(ctx context.Context, l *L) (*L, error) {
	for {
		p.mu.Lock()
		turn, last, present := p.mu.turn, p.mu.last, p.life.Load()
		p.mu.Unlock()
		switch {
		case present != nil && present != l:
			return present, nil
		case last:
			return nil, p.closed
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: the message was not sent: %w: %w", p.handle, ErrBetweenLives, context.Cause(ctx))
		}
	}
}

// change changes what After looks at.
func (p *Present[L]) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.mu.turn)
	p.mu.turn = make(chan struct{})
}
