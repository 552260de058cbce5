package coordination

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// Lease is one name in one session. It excludes other sessions, not other goroutines of this one: who
// acquires it here while it is held gets the same Grant, and a Release ends it for all. Methods may be
// called by many goroutines.
//
// A name is from 1 to MaxName bytes of UTF-8 and does not begin with SessionRecords. All of it counts: upper and
// lower case, slashes and spaces make different leases in every store, and nothing is cut off. A name that is not
// allowed makes every call return ErrInvalid. Sessions of one store and name, in any process, mean one lease; clusters
// that share a store put their own name into those of their leases. CheckName applies the rules; whatever names a lease
// in this module does so by it.
type Lease struct {
	s      *Session
	name   string
	driver *driver // touched by the loop of the session alone
}

// Name returns the name.
func (l *Lease) Name() string { return l.name }

// TryAcquire makes one attempt, bounded by ctx and Config.OperationTimeout. Held by this session
// already: the same grant. After ErrHeld another session certainly holds it; after any other error the
// outcome is unknown and no holder is left behind.
func (l *Lease) TryAcquire(ctx context.Context) (*Grant, error) {
	ctx, cancel := l.s.timeout(ctx)
	defer cancel()
	return l.acquire(ctx, core.Acquire{})
}

// Acquire waits until the lease is held or ctx ends, with Config.Fair in the order of arrival; the error then wraps the outcome of the last
// attempt and the cause of ctx. What is under way then is resolved in the background and released: a
// caller that gave up never leaves a holder behind. An outage of the store is waited out.
func (l *Lease) Acquire(ctx context.Context) (*Grant, error) {
	return l.acquire(ctx, core.Acquire{Wait: true})
}

// Blank is how a session has left a lease that it released; see Grant.Yield.
type Blank struct {
	Version Version
	Token   Token
}

// AcquireBlank is Acquire by a session that has been told, by the one that held the lease last, how it was
// left: the lease is claimed without a look, which saves a call of the store. If it has been written
// since, the claim fails and Acquire goes on as usual. A zero Blank says nothing. One that did not come from
// Grant.Yield of this lease may break the promise that tokens grow, so take it from trusted members only.
func (l *Lease) AcquireBlank(ctx context.Context, b Blank) (*Grant, error) {
	return l.acquire(ctx, core.Acquire{Wait: true, From: core.Blank{Version: core.Version(b.Version), Token: uint64(b.Token)}})
}

func (l *Lease) acquire(ctx context.Context, how core.Acquire) (*Grant, error) {
	if err := CheckName(l.name); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("lease %q: %w: not tried: %w", l.name, ErrUnknown, context.Cause(ctx))
	}
	begun := l.s.clock.Read().Mono
	l.s.count(func(s *Status) { s.Waiting++ })
	g, err := l.ask(ctx, how)
	l.answered(err, begun)
	return g, err
}

// answered counts what a caller was told.
func (l *Lease) answered(err error, begun time.Duration) {
	result := "unknown"
	l.s.count(func(s *Status) {
		s.Waiting--
		switch {
		case err == nil:
			s.Granted++
			result = "granted"
		case errors.Is(err, ErrHeld):
			s.Taken++
			result = "taken"
		default:
			s.Unknown++
		}
	})
	l.s.meters.waited(l.s.clock.Read().Mono-begun, result)
}

// ask makes a request of the loop and waits for its answer.
func (l *Lease) ask(ctx context.Context, how core.Acquire) (*Grant, error) {
	id, reply := l.s.id(), make(chan answer, 1)
	how.ID = id
	if !l.s.post(l, how, reply) {
		return nil, fmt.Errorf("lease %q: %w", l.name, ErrClosed)
	}
	var gaveUp error
	var a answer
	select {
	case a = <-reply:
	case <-ctx.Done():
		gaveUp = context.Cause(ctx)
		l.s.post(l, core.Cancel{ID: id}, nil)
		a = <-reply // at once: the loop answers, or has
	}
	if a.Outcome == core.Acquired {
		return a.grant, nil
	}
	return nil, l.failure(a.Answer, gaveUp)
}

// failure is the error of an attempt that was not granted.
func (l *Lease) failure(a core.Answer, gaveUp error) error {
	cause := ErrUnknown
	switch a.Outcome {
	case core.Taken:
		cause = &HeldError{Holder{Owner: a.Holder.Owner, Session: a.Holder.Nonce, Token: Token(a.Holder.Token), Remaining: a.Left, Forever: a.Holder.Forever}}
	case core.Shut:
		cause = ErrClosed
	case core.StillHeld:
		cause = ErrStillHeld
	}
	err := fmt.Errorf("lease %q: %w", l.name, cause)
	if a.Err != nil {
		err = fmt.Errorf("%w: %w", err, a.Err)
	}
	if gaveUp != nil {
		err = fmt.Errorf("%w: %w", err, gaveUp)
	}
	return err
}

// release waits for the end of a tenure to be certain.
func (l *Lease) release(ctx context.Context, token Token) (Blank, error) {
	reply := make(chan answer, 1)
	if !l.s.post(l, core.Release{ID: l.s.id(), Token: uint64(token)}, reply) {
		return Blank{}, l.s.closeError()
	}
	select {
	case a := <-reply:
		if a.Outcome == core.Done {
			return Blank{Version(a.Blank.Version), Token(a.Blank.Token)}, nil
		}
		return Blank{}, l.failure(a.Answer, nil)
	case <-ctx.Done():
		return Blank{}, fmt.Errorf("lease %q: %w: %w", l.name, ErrUnknown, context.Cause(ctx))
	}
}

// Do acquires, runs work under a context that ends with ctx or with the grant, and releases when work
// has returned or panicked. It returns the error of work, or why there was no grant. The release is
// waited for during Config.OperationTimeout and then goes on in the background.
func (l *Lease) Do(ctx context.Context, work func(ctx context.Context, g *Grant) error) error {
	g, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		after, cancel := l.s.timeout(context.WithoutCancel(ctx))
		defer cancel()
		_ = g.Release(after) // expires by itself if the store stays away
	}()
	under, cancel := context.WithCancelCause(context.WithValue(ctx, tenureKey{}, Tenure(g)))
	defer cancel(ErrReleased)
	defer context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })()
	return work(under, g)
}
