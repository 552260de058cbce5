package lifecycle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Present holds the current incarnation behind a handle, or none between two incarnations and after
// the last one. Create it with NewPresent. It is safe for concurrent use.
//
// A replicator does not use it: the replicator's lock also covers the ledger that one incarnation
// hands over to the next, and its incarnation stays current until its actor has stopped.
type Present[L any] struct {
	handle      string
	closed      error
	incarnation atomic.Pointer[L]

	mu struct {
		sync.Mutex
		turn chan struct{} // closed, and replaced, when incarnation or last changes
		last bool          // no other incarnation follows
		err  error         // of the last Drop
	}
}

// NewPresent returns a Present without an incarnation. The errors of After begin with handle;
// closed is the error of After when no incarnation follows.
func NewPresent[L any](handle string, closed error) *Present[L] {
	p := &Present[L]{handle: handle, closed: closed}
	p.mu.turn = make(chan struct{})
	return p
}

// Load returns the current incarnation, or nil if there is none.
func (p *Present[L]) Load() *L { return p.incarnation.Load() }

// Begin makes l the current incarnation. last means that no other incarnation follows.
func (p *Present[L]) Begin(l *L, last bool) {
	p.change(func() {
		p.incarnation.Store(l)
		p.mu.last = last
	})
}

// Last declares that no incarnation follows the current one, so that After no longer waits. Begin
// reverts it.
func (p *Present[L]) Last() {
	p.change(func() { p.mu.last = true })
}

// Follows reports whether an incarnation may follow the current one.
func (p *Present[L]) Follows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.mu.last
}

// Drop removes l, which has ended with err, if it is the current incarnation. A handle must not
// keep an actor system alive, since one takes several megabytes.
func (p *Present[L]) Drop(l *L, err error) {
	p.change(func() {
		if p.incarnation.CompareAndSwap(l, nil) {
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

// After returns the current incarnation if it is not l, or waits for the next one. It returns the
// error of NewPresent if no incarnation follows, and an error that wraps ErrRejoining and the cause
// of ctx if ctx ends first.
func (p *Present[L]) After(ctx context.Context, l *L) (*L, error) {
	for {
		p.mu.Lock()
		turn, last, present := p.mu.turn, p.mu.last, p.incarnation.Load()
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
			return nil, fmt.Errorf("%s: the message was not sent: %w: %w", p.handle,
				ErrRejoining, context.Cause(ctx))
		}
	}
}

// change runs f, which changes the state that After waits for.
func (p *Present[L]) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.mu.turn)
	p.mu.turn = make(chan struct{})
}
