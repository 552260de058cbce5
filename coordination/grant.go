package coordination

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// Grant is one tenure of a lease, from an acquire to its release or loss. It implements Tenure and
// is safe for concurrent use. After the tenure has ended the methods keep answering, and never
// report about a later tenure.
//
// A grant has two deadlines. Until stop-by, Check returns nil and new work may start. Stop-by is
// Config.Drain before the end of validity. A grant that was not renewed by then is lost for good:
// Check fails, Context ends, OnLost runs. Until validity ends, running work may finish; Remaining
// returns how long. No other session can hold the lease before that.
type Grant struct {
	lease    *Lease
	token    Token
	previous Token
	ctx      context.Context
	cancel   context.CancelCauseFunc
	validity atomic.Pointer[core.Validity]
	end      atomic.Pointer[ending]
	expired  *LostError // what Check returns before the session has noticed the expiry

	near struct {
		sync.Mutex
		ongoing  bool
		handlers map[*func(time.Duration)]struct{}
	}
}

// ending describes how a grant ended.
type ending struct {
	err     error
	drained bool // running work has no time left
}

func newGrant(l *Lease, token Token, v core.Validity) *Grant {
	g := &Grant{lease: l, token: token, expired: &LostError{Why: Expired}}
	g.validity.Store(&v)
	ctx := context.WithValue(context.Background(), tenureKey{}, Tenure(g))
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Lease returns the lease that was granted.
func (g *Grant) Lease() *Lease { return g.lease }

// Token returns the fencing token of the tenure.
func (g *Grant) Token() Token { return g.token }

// Context ends with the tenure; see Tenure.
func (g *Grant) Context() context.Context { return g.ctx }

// Check reports whether new work may start; see Tenure.
func (g *Grant) Check() error {
	if e := g.end.Load(); e != nil {
		return e.err
	}
	if !g.validity.Load().MayStart(g.lease.s.now()) {
		return g.expired
	}
	return nil
}

// Remaining returns the time until running work must have finished, or 0 if that time has passed.
// It is longer than the time for new work by Config.Drain.
func (g *Grant) Remaining() time.Duration {
	if e := g.end.Load(); e != nil && e.drained {
		return 0
	}
	return max(0, g.validity.Load().Remaining(g.lease.s.now()))
}

// OnLost runs f once, in its own goroutine, when the tenure ends other than by Release, or
// immediately if it has already ended so. Any number of functions may be registered. stop
// unregisters f and reports whether it did so in time. A panic in f is logged and affects nothing
// else. f may call any function of this package.
func (g *Grant) OnLost(f func(*LostError)) (stop func() bool) {
	return context.AfterFunc(g.ctx, func() {
		if lost, ok := errors.AsType[*LostError](context.Cause(g.ctx)); ok {
			g.contain(func() { f(lost) })
		}
	})
}

// OnNearExpiry runs f, in its own goroutine, when renewals have failed until less than a third of
// the TTL remains. It runs f once per episode; a successful renewal ends an episode. Called during
// an episode, OnNearExpiry runs f immediately. stop unregisters f.
func (g *Grant) OnNearExpiry(f func(remaining time.Duration)) (stop func()) {
	g.near.Lock()
	defer g.near.Unlock()
	if g.end.Load() != nil {
		return func() {}
	}
	if g.near.handlers == nil {
		g.near.handlers = map[*func(time.Duration)]struct{}{}
	}
	g.near.handlers[&f] = struct{}{}
	if g.near.ongoing {
		go g.contain(func() { f(g.Remaining()) })
	}
	return func() {
		g.near.Lock()
		defer g.near.Unlock()
		delete(g.near.handlers, &f)
	}
}

// Release gives the lease up. Call it when the guarded work has stopped, also after a loss: other
// sessions can then acquire the lease sooner. Check fails from the call on. Release waits for the
// store:
//
//   - nil: this grant certainly does not hold the lease any more. This is also the result if it
//     never did, or was released before.
//   - ErrStillHeld: the store has refused the write.
//   - any other error: unknown, because ctx ended or the store did not answer before the lease
//     expired.
//
// After an error the session tries again in the background until the release is certain or the
// lease has expired.
func (g *Grant) Release(ctx context.Context) error {
	_, err := g.yield(ctx)
	return err
}

// yield is Release for a hand-over; see leases.Held.
func (g *Grant) yield(ctx context.Context) (core.Blank, error) {
	g.finish(ending{ErrReleased, true})
	return g.lease.release(ctx, g.token)
}

func (g *Grant) abandon(why error) {
	g.finish(ending{&LostError{Why: Closed, Err: why}, false})
	g.lease.s.post(g.lease, core.Abandon{Token: g.token}, nil)
}

// releaseSoon releases without waiting.
func (g *Grant) releaseSoon() {
	g.finish(ending{ErrReleased, true})
	g.lease.s.post(g.lease, core.Release{ID: g.lease.s.id(), Token: g.token}, nil)
}

// finish ends the grant, once; the first reason wins.
func (g *Grant) finish(e ending) {
	if g.end.CompareAndSwap(nil, &e) {
		g.cancel(e.err)
		g.near.Lock()
		defer g.near.Unlock()
		g.near.handlers = nil // a handler may keep an actor system alive
		return
	}
	if e.drained { // released after a loss
		g.drain()
	}
}

// drain leaves running work no more time, once the grant has ended.
func (g *Grant) drain() {
	if first := g.end.Load(); !first.drained {
		g.end.CompareAndSwap(first, &ending{first.err, true})
	}
}

func (g *Grant) extend(v core.Validity) {
	g.near.Lock()
	g.near.ongoing = false
	g.near.Unlock()
	g.validity.Store(&v)
}

func (g *Grant) warn(remaining time.Duration) {
	g.near.Lock()
	defer g.near.Unlock()
	g.near.ongoing = true
	for f := range g.near.handlers {
		go g.contain(func() { (*f)(remaining) })
	}
}

func (g *Grant) contain(f func()) { g.lease.s.contain(slog.String("lease", g.lease.name), f) }

// contain runs a handler of the user and recovers from its panic.
func (s *Session) contain(of slog.Attr, f func()) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Logger.Error("coordination: handler panicked", of,
				slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	f()
}

func (g *Grant) String() string { return fmt.Sprintf("lease %q, token %d", g.lease.name, g.token) }
