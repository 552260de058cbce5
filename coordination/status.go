package coordination

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Status is what a session has done and has. Numbers without a word of their own count since Open.
type Status struct {
	Owner string
	// Held leases now, and how many of them are near expiry: see Grant.OnNearExpiry.
	Held, NearExpiry int
	// Waiting callers of Acquire and TryAcquire now.
	Waiting int
	// Granted, Taken and Unknown are what those callers were told.
	Granted, Taken, Unknown uint64
	// Released tenures, and Lost ones by reason.
	Released uint64
	Lost     map[Loss]uint64
	// Calls of the store, by Operation, without watching.
	Calls map[Operation]Calls
	// Renewed is how long ago a write succeeded last: a renewal, or one that began or ended a tenure. 0 before the
	// first.
	Renewed time.Duration
}

// Operation is a call of the store.
type Operation string

// Operations.
const (
	OperationLoad Operation = "load"
	OperationSwap Operation = "swap"
)

// Calls of one operation that have ended. A conflict is an answer and no failure.
type Calls struct{ Succeeded, Conflicted, Failed uint64 }

// stats is what Status is made of.
type stats struct {
	sync.Mutex
	status  Status
	renewed time.Duration // monotonic
	wrote   bool
	near    bool // the session record is near expiry
	expired bool // something has expired since the store's last answer
}

// count changes the statistics.
func (s *Session) count(change func(*Status)) {
	s.stats.Lock()
	defer s.stats.Unlock()
	change(&s.stats.status)
}

// called notes the end of a call of the store.
func (s *Session) called(op Operation, begun time.Duration, err error) {
	now := s.clock.Read().Mono
	s.meters.call(op, now-begun, err)
	s.stats.Lock()
	defer s.stats.Unlock()
	c := s.stats.status.Calls[op]
	switch {
	case err == nil:
		c.Succeeded++
	case isConflict(err):
		c.Conflicted++
	default:
		c.Failed++
	}
	s.stats.status.Calls[op] = c
	if op == OperationSwap && err == nil {
		s.stats.renewed, s.stats.wrote = now, true
	}
	if err == nil || isConflict(err) {
		s.stats.expired = false
	}
}

// Status returns the numbers. It asks nobody and may be called at any time, also after Close.
func (s *Session) Status() Status {
	s.stats.Lock()
	defer s.stats.Unlock()
	st := s.stats.status
	st.Lost, st.Calls = maps.Clone(st.Lost), maps.Clone(st.Calls)
	if s.stats.wrote {
		st.Renewed = s.clock.Read().Mono - s.stats.renewed
	}
	return st
}

// Health asks the store for one record. It is nil if the store has answered and no lease is near expiry; else
// the error wraps ErrClosed after Close, ErrUnknown if there is no answer within ctx and
// Config.OperationTimeout, or ErrLost if leases are about to be lost.
func (s *Session) Health(ctx context.Context) error {
	if s.ended() {
		return ErrClosed
	}
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	if _, _, err := s.load(ctx, SessionRecords+s.nonce); err != nil {
		return fmt.Errorf("%w: store: %w", ErrUnknown, err)
	}
	if n := s.Status().NearExpiry; n > 0 {
		return fmt.Errorf("%w: %d leases near expiry", ErrLost, n)
	}
	return nil
}

// load is Store.Load, counted.
func (s *Session) load(ctx context.Context, name string) (Record, Version, error) {
	begun := s.clock.Read().Mono
	rec, ver, err := s.store.Load(ctx, name)
	s.called(OperationLoad, begun, err)
	return rec, ver, err
}

// swap is Store.Swap, counted.
func (s *Session) swap(ctx context.Context, name string, old Version, next Record) (Version, error) {
	begun := s.clock.Read().Mono
	ver, err := s.store.Swap(ctx, name, old, next)
	s.called(OperationSwap, begun, err)
	return ver, err
}

// given is the token that the store has given a record itself, or 0.
func (s *Session) given(ver Version) Token {
	if g, ok := s.store.(TokenGiver); ok {
		return g.TokenOf(ver)
	}
	return 0
}
