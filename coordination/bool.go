package coordination

import (
	"context"
	"errors"
	"sync"
)

// Bool returns the boolean form of the lease: acquired or not, released or not, or an error for
// "unknown". It has no fencing token and takes no context; prefer Lease where the work can carry a
// token.
func (l *Lease) Bool() *BoolLease { return &BoolLease{l: l.orNone()} }

// BoolLease is a lease in the form of the four functions that leases of other actor systems have.
// It holds at most one grant. Each call except CheckLease waits for the store, for at most
// Config.OperationTimeout.
type BoolLease struct {
	l *Lease

	mu struct {
		sync.Mutex
		grant    *Grant
		attempts map[*context.CancelFunc]struct{} // pending acquires
	}
}

// Acquire makes one attempt, as Lease.TryAcquire does. true: held, also if it was held before.
// false: certainly held by another session. An error: unknown; nothing is held, and no holder is
// left behind.
func (b *BoolLease) Acquire() (bool, error) { return b.AcquireWithCallback(nil) }

// AcquireWithCallback is like Acquire, and runs onLost once, in its own goroutine, when this tenure
// is lost. onLost receives a *LostError; it does not run before the lease was held, nor after
// Release. Each call that returned true runs its own onLost.
func (b *BoolLease) AcquireWithCallback(onLost func(cause error)) (bool, error) {
	ctx, cancel := context.WithCancel(context.Background())
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
		g.releaseSoon()
		return false, ErrReleased
	}
	b.mu.grant = g
	if onLost != nil {
		g.OnLost(func(e *LostError) { onLost(e) })
	}
	return true, nil
}

// Release gives up the lease and withdraws a pending Acquire. true: certainly not held by this
// BoolLease any more, also if nothing was held. false: certainly still held. An error: unknown.
// After false and after an error the session tries again in the background. CheckLease returns
// false from the call on.
func (b *BoolLease) Release() (bool, error) {
	b.mu.Lock()
	for stop := range b.mu.attempts {
		(*stop)()
	}
	clear(b.mu.attempts)
	g := b.mu.grant
	b.mu.Unlock()
	if g == nil {
		return true, nil
	}
	ctx, cancel := b.l.s.timeout(context.Background())
	defer cancel()
	err := g.Release(ctx)
	if errors.Is(err, ErrStillHeld) {
		return false, nil
	}
	return err == nil, err
}

// CheckLease reports whether the lease is held and new work may start. It compares the clock, does
// no I/O and does not allocate. Call it before each guarded action.
func (b *BoolLease) CheckLease() bool {
	b.mu.Lock()
	g := b.mu.grant
	b.mu.Unlock()
	return g != nil && g.Check() == nil
}
