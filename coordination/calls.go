package coordination

import (
	"context"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/silence"
)

// timeout bounds ctx by Config.OperationTimeout.
func (s *Session) timeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return s.timeoutAfter(ctx, s.cfg.OperationTimeout)
}

// timeoutAfter bounds ctx by d. With Config.Clock set, the context has no Deadline, because a
// deadline would refer to another clock. A call may have more time than OperationTimeout, but a
// connection that has been silent for about that long is not waited for.
func (s *Session) timeoutAfter(ctx context.Context,
	d time.Duration) (context.Context, context.CancelFunc) {
	ctx = silence.Patiently(ctx, s.cfg.TTL, s.cfg.OperationTimeout)
	if s.cfg.Clock == nil {
		return context.WithTimeout(ctx, d)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := s.clock.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}

// load calls Store.Load and counts the call.
func (s *Session) load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	begun := s.clock.Read().Mono
	rec, ver, err := s.store.Load(ctx, name)
	s.called(loads, begun, err)
	return rec, ver, err
}

// swap calls Store.Swap and counts the call.
func (s *Session) swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	begun := s.clock.Read().Mono
	ver, err := s.store.Swap(ctx, name, old, next)
	s.called(swaps, begun, err)
	return ver, err
}

// given returns the token that the store itself gave to the record of version ver, or 0.
func (s *Session) given(ver leasestore.Version) Token {
	if g, ok := s.store.(leasestore.TokenGiver); ok {
		return g.TokenOf(ver)
	}
	return 0
}
