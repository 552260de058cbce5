package coordination

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// Lease is one name in one session. It excludes other sessions, not other goroutines of the same
// session: an acquire while this session holds the lease returns the same Grant, and one Release
// ends that grant for all of them. Methods may be called from many goroutines.
//
// A name has from 1 to leasestore.MaxName bytes of UTF-8 and does not begin with
// leasestore.SessionRecords. Every byte counts: upper and lower case, slashes and spaces make
// different leases in every store, and names are never truncated. With an invalid name every call
// returns ErrInvalid. Sessions of one store that use the same name, in any process, share one
// lease; clusters that share a store put their own name into the names of their leases.
type Lease struct {
	s      *Session
	name   string
	driver *driver // used only by the loop of the session
}

// Name returns the name of the lease.
func (l *Lease) Name() string { return l.name }

// check returns an error that wraps ErrInvalid if no call of the lease can succeed.
func (l *Lease) check() error {
	switch {
	case l == nil:
		return fmt.Errorf("%w: the lease is nil", ErrInvalid)
	case l.s == nil:
		return fmt.Errorf("%w: lease %.80q: the session is nil, or Open has not made it; "+
			"Node.Session is nil unless RunConfig.Store is set", ErrInvalid, l.name)
	}
	return checkName(l.name)
}

// orNone returns l, or for nil a lease whose calls return ErrInvalid.
func (l *Lease) orNone() *Lease {
	if l == nil {
		return &Lease{}
	}
	return l
}

// TryAcquire makes one attempt, which ends with the first call of the store that fails, and at the
// latest with ctx or after four times Config.OperationTimeout. If this session already holds the
// lease, it returns the present grant. After ErrHeld another session certainly holds the
// lease. After any other error the outcome is unknown, and the attempt leaves no holder behind.
func (l *Lease) TryAcquire(ctx context.Context) (*Grant, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	ctx, cancel := l.s.timeoutAfter(ctx, attemptOperations*l.s.cfg.OperationTimeout)
	defer cancel()
	return l.acquire(ctx, core.Acquire{})
}

// attemptOperations is how many calls of the store an attempt makes at most: reads of the lease and
// of its holder's session, and writes of the session's own record and of the lease.
const attemptOperations = 4

// Acquire waits until the session holds the lease or ctx ends. With Config.Fair, waiters are served
// in order of arrival. If ctx ends, the error wraps the outcome of the last attempt and the cause
// of ctx, and an attempt in flight is resolved and released in the background: a caller that gives
// up never leaves a holder behind. Acquire keeps waiting through an outage of the store.
func (l *Lease) Acquire(ctx context.Context) (*Grant, error) {
	return l.acquire(ctx, core.Acquire{Wait: true})
}

func (l *Lease) acquire(ctx context.Context, how core.Acquire) (*Grant, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("lease %q: %w: not tried: %w", l.name, ErrUnknown,
			context.Cause(ctx))
	}
	begun := l.s.clock.Read().Mono
	l.s.count(func(s *Status) { s.Waiting++ })
	g, err := l.ask(ctx, how)
	l.answered(err, begun)
	return g, err
}

// answered counts an answer to a caller.
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

// ask sends a request to the loop and waits for its answer.
func (l *Lease) ask(ctx context.Context, how core.Acquire) (*Grant, error) {
	id, reply := l.s.id(), make(chan answer, 1)
	how.ID = id
	if !l.s.post(l, how, reply) {
		return nil, fmt.Errorf("lease %q: %w", l.name, l.s.closed())
	}
	var gaveUp error
	var a answer
	select {
	case a = <-reply:
	case <-ctx.Done():
		gaveUp = context.Cause(ctx)
		l.s.post(l, core.Cancel{ID: id}, nil)
		a = <-reply // does not wait: the loop answers the Cancel, or has already answered
	}
	if a.Outcome == core.Acquired {
		return a.grant, nil
	}
	return nil, l.failure(a.Answer, gaveUp)
}

// failure returns the error of an attempt that was not granted.
func (l *Lease) failure(a core.Answer, gaveUp error) error {
	cause := ErrUnknown
	switch a.Outcome {
	case core.Taken:
		cause = &HeldError{Holder{Owner: a.Holder.Owner, Session: a.Holder.Nonce,
			Token: a.Holder.Token, Remaining: a.Left, Forever: a.Holder.Forever}}
	case core.Shut:
		cause = ErrClosed
	case core.StillHeld:
		cause = ErrStillHeld
	}
	err := fmt.Errorf("lease %q: %w", l.name, cause)
	if a.Err != nil {
		err = fmt.Errorf("%w: %w", err, a.Err)
	}
	if gaveUp != nil && !errors.Is(err, gaveUp) {
		err = fmt.Errorf("%w: %w", err, gaveUp)
	}
	return err
}

// release waits until the end of the tenure is certain.
func (l *Lease) release(ctx context.Context, token Token) (core.Blank, error) {
	reply := make(chan answer, 1)
	if !l.s.post(l, core.Release{ID: l.s.id(), Token: token}, reply) {
		return core.Blank{}, l.s.closeError()
	}
	select {
	case a := <-reply:
		if a.Outcome == core.Done {
			return a.Blank, nil
		}
		return core.Blank{}, l.failure(a.Answer, nil)
	case <-ctx.Done():
		return core.Blank{}, fmt.Errorf("lease %q: %w: %w", l.name, ErrUnknown, context.Cause(ctx))
	}
}

// Do acquires the lease, runs work under a context that ends with ctx or with the grant, and
// releases the lease when work has returned or panicked. It returns the error of work, or the error
// of Acquire. Do waits for the release for at most Config.OperationTimeout; after that the release
// continues in the background. If work is nil, the error is ErrInvalid.
func (l *Lease) Do(ctx context.Context, work func(ctx context.Context, g *Grant) error) error {
	if l != nil && work == nil {
		return fmt.Errorf("%w: lease %.80q: work is nil", ErrInvalid, l.name)
	}
	g, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		after, cancel := l.s.timeout(context.WithoutCancel(ctx))
		defer cancel()
		_ = g.Release(after) // the lease expires if the store stays unavailable
	}()
	under, cancel := context.WithCancelCause(context.WithValue(ctx, tenureKey{}, Tenure(g)))
	defer cancel(ErrReleased)
	defer context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })()
	return work(under, g)
}
