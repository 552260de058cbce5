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

// Grant is one tenure of a lease, from an acquire to its release or loss. It is a Tenure, and safe for
// use by many goroutines. The methods of a grant that is over keep answering; they never speak of a
// later tenure.
//
// Two deadlines govern it. Until stop-by, Check is nil and new work may start. At stop-by, which is
// Config.Drain earlier than validity ends, a grant that could not be renewed is lost for good: Check
// fails, Context ends, OnLost runs. Until validity ends, the work under way may finish; Remaining says
// how long. Nobody else can hold the lease before.
type Grant struct {
	lease    *Lease
	token    Token
	previous Token
	ctx      context.Context
	cancel   context.CancelCauseFunc
	validity atomic.Pointer[core.Validity]
	end      atomic.Pointer[ending]
	expired  *LostError // what Check says before the session has noticed

	near struct {
		sync.Mutex
		ongoing  bool
		handlers map[*func(time.Duration)]struct{}
	}
}

// ending is how a grant ended.
type ending struct {
	err     error
	drained bool // nothing may be finished any more
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

// Previous returns the token of the tenure before this one, whoever had it: nobody held the lease in between.
// It is 0 if there was none, or the store has forgotten it. So what that tenure has left, under its token, is
// known to be the last word.
func (g *Grant) Previous() Token { return g.previous }

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

// Remaining is the time until nothing may be finished any more; 0 if that has come. It is Config.Drain
// longer than new work may start.
func (g *Grant) Remaining() time.Duration {
	if e := g.end.Load(); e != nil && e.drained {
		return 0
	}
	return max(0, g.validity.Load().Remaining(g.lease.s.now()))
}

// OnLost runs f once, in its own goroutine, when the tenure ends otherwise than by Release; at once if
// it has already. Any number of functions may be registered; stop withdraws f and reports whether that
// was in time. A panic in f is logged and hurts nobody else. f may call anything here.
func (g *Grant) OnLost(f func(*LostError)) (stop func() bool) {
	return context.AfterFunc(g.ctx, func() {
		if lost, ok := errors.AsType[*LostError](context.Cause(g.ctx)); ok {
			contain(g, func() { f(lost) })
		}
	})
}

// OnNearExpiry runs f, in its own goroutine, when renewals fail so long that less than a third of the
// TTL remains: once per episode, an episode ending with a renewal that succeeds. During one, it runs
// at once. Stop withdraws f.
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
		go contain(g, func() { f(g.Remaining()) })
	}
	return func() {
		g.near.Lock()
		defer g.near.Unlock()
		delete(g.near.handlers, &f)
	}
}

// Release gives the lease up. Call it when the guarded work has ended, also after a loss: it lets
// others in sooner. Check fails from the call on. It waits for the store:
//
//   - nil: this grant certainly does not hold the lease any more, also if it never did or was released
//     before.
//   - ErrStillHeld: the store has refused.
//   - anything else: unknown, for ctx ended or the store gave no answer until the lease expired.
//
// After an error it is tried again in the background until it is certain or the lease has expired.
func (g *Grant) Release(ctx context.Context) error {
	_, err := g.Yield(ctx)
	return err
}

// Yield is Release for a hand-over: it also returns how it has left the lease, for Lease.AcquireBlank of
// the session that is to have it next. The Blank is zero if that is not known, also when the error is nil:
// the grant was over already, or another call has released it.
func (g *Grant) Yield(ctx context.Context) (Blank, error) {
	g.finish(ending{ErrReleased, true})
	return g.lease.release(ctx, g.token)
}

// abandon releases without waiting.
func (g *Grant) abandon() {
	g.finish(ending{ErrReleased, true})
	g.lease.s.post(g.lease, core.Release{ID: g.lease.s.id(), Token: uint64(g.token)}, nil)
}

// finish ends the grant, once; the first reason counts.
func (g *Grant) finish(e ending) {
	if g.end.CompareAndSwap(nil, &e) {
		g.cancel(e.err)
		g.near.Lock()
		defer g.near.Unlock()
		g.near.handlers = nil // they may keep an actor system alive
		return
	}
	if e.drained { // released after a loss
		g.drain()
	}
}

// drain leaves no time to finish anything, once the grant has ended.
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
		go contain(g, func() { (*f)(remaining) })
	}
}

func contain(g *Grant, f func()) { g.lease.s.contain(slog.String("lease", g.lease.name), f) }

// contain runs a handler of the user and survives its panic.
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
