package coordination

import (
	"context"
	"errors"
	"sync"
)

// Bool returns the thin form of a lease: acquired or not, released or not, or an error for "unknown".
// It has no fencing token; prefer Lease where the work can carry one.
func (l *Lease) Bool() *BoolLease { return &BoolLease{l: l} }

// BoolLease is a lease as three functions. It holds at most one grant.
type BoolLease struct {
	l *Lease

	mu struct {
		sync.Mutex
		grant    *Grant
		attempts map[*context.CancelFunc]struct{} // acquires under way
	}
}

// Acquire makes one attempt, as Lease.TryAcquire does. true: held. false: certainly held by another.
// An error: unknown. onLost may be nil; it runs once, in its own goroutine, when this tenure is
// lost; not before the lease was held, and not after Release.
func (b *BoolLease) Acquire(ctx context.Context, onLost func(cause error)) (bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.mu.Lock()
	if b.mu.attempts == nil {
		b.mu.attempts = map[*context.CancelFunc]struct{}{}
	}
	b.mu.attempts[&cancel] = struct{}{}
	b.mu.Unlock()

	g, err := b.l.TryAcquire(ctx)

	b.mu.Lock()
	defer b.mu.Unlock()
	_, wanted := b.mu.attempts[&cancel]
	delete(b.mu.attempts, &cancel)
	switch {
	case errors.Is(err, ErrHeld):
		return false, nil
	case err != nil:
		return false, err
	case !wanted: // released meanwhile
		g.abandon()
		return false, ErrReleased
	}
	b.mu.grant = g
	if onLost != nil {
		g.OnLost(func(e *LostError) { onLost(e) })
	}
	return true, nil
}

// Release gives up what is held, and withdraws an Acquire under way. true: certainly not held by this
// any more, also if nothing was held. false: certainly still held. An error: unknown.
func (b *BoolLease) Release(ctx context.Context) (bool, error) {
	b.mu.Lock()
	for cancel := range b.mu.attempts {
		(*cancel)()
	}
	clear(b.mu.attempts)
	g := b.mu.grant
	b.mu.Unlock()
	if g == nil {
		return true, nil
	}
	err := g.Release(ctx)
	if errors.Is(err, ErrStillHeld) {
		return false, nil
	}
	return err == nil, err
}

// Check reports whether the lease is held and new work may start. It compares the clock, never blocks
// and does not allocate.
func (b *BoolLease) Check() bool {
	b.mu.Lock()
	g := b.mu.grant
	b.mu.Unlock()
	return g != nil && g.Check() == nil
}
