package coordination

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// Close ends every tenure with the cause Closed and releases its lease. A lease that nobody releases is
// released Config.Drain later: what was acquired by Lease.Acquire or TryAcquire may have work that only
// its owner knows of. Do, Gated and the actor of Props release as soon as their work has ended, so they
// do not use the Drain up.
//
// It returns nil when every lease is certainly released or expired. Otherwise the error is ErrUnknown and
// names the leases, each with the last answer of the store: what is left expires by itself. Close stops
// trying when ctx ends, or Config.Drain and six times Config.OperationTimeout after the call. Where the
// session renews one record for all its leases, it gives that record up after half of those operations:
// then nobody takes the session for a holder any more, although a record that cannot be read or written
// still names it.
//
// Afterwards nothing of the session runs. Calling it again gives the same result.
func (s *Session) Close(ctx context.Context) error {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.closing.Do(func() { s.send(message{}) })
	select {
	case <-s.done:
	case <-ctx.Done():
		s.hurried.Do(func() { close(s.hurry) })
		<-s.done
	}
	s.work.Wait()
	return s.result
}

func (s *Session) closeError() error {
	<-s.done
	if s.result != nil {
		return fmt.Errorf("%w: %w", ErrClosed, s.result)
	}
	return nil
}

const (
	// releaseOperations is how many calls of the store a release may take after the Drain: a write, a look
	// after a conflict, and another write.
	releaseOperations = 3
	// closeOperations adds the same for the record of the session.
	closeOperations = 2 * releaseOperations
	// mostNamed bounds the leases that the error of Close names.
	mostNamed = 8
)

var errNotReleased = errors.New("not released in time")

// closing is how far Close has come.
type closing struct {
	begun  bool
	since  time.Duration // on the monotonic clock
	keeper bool          // the session record is being given up
}

// close ends every tenure, once.
func (l *loop) close() {
	if l.closing.begun {
		return
	}
	l.closing.begun, l.closing.since = true, l.s.now().Mono
	for _, d := range l.leases {
		d.step(core.Close{})
	}
	l.endObservers()
}

// finished reports that Close has nothing left to do.
func (l *loop) finished() bool {
	return l.closing.begun && l.quiet() && (l.keeper == nil || l.keeper.machine.Quiet())
}

// overdue reports that Close has had its Drain and time for so many calls of the store.
func (l *loop) overdue(operations time.Duration) bool {
	return l.closing.begun && l.untilPatienceFor(operations) <= 0
}

func (l *loop) untilPatienceFor(operations time.Duration) time.Duration {
	end := l.closing.since + l.s.cfg.Drain + operations*l.s.cfg.OperationTimeout
	return end - l.s.now().Mono
}

// untilOverdue is the time until Close gives something up.
func (l *loop) untilOverdue() time.Duration {
	switch {
	case !l.closing.begun:
		return time.Hour
	case l.keeper == nil || l.closing.keeper:
		return l.untilPatienceFor(closeOperations)
	}
	return l.untilPatienceFor(releaseOperations)
}

// dismiss gives up the session record. Leases that are not released by then are held by nobody with it.
func (l *loop) dismiss() {
	l.closing.keeper = true
	for _, d := range l.leases {
		d.dismissed = !d.machine.Quiet()
	}
	if up, ok := l.back.(core.Backed); ok {
		l.keeper.step(core.Release{Token: up.Token})
	}
	l.keeper.step(core.Close{})
}

// end ends the loop. What is not released is left to expire.
func (l *loop) end() {
	l.s.result = l.unreleased()
	for _, d := range l.leases {
		d.shut()
	}
	l.s.abort()
	_ = l.s.meters.unobserve() // the provider may be gone by now
	close(l.s.done)
}

// unreleased names the leases whose records may still name this session.
func (l *loop) unreleased() error {
	var errs []error
	left := 0
	for _, d := range l.leases {
		why := d.unreleased()
		if why == nil {
			continue
		}
		if left++; left <= mostNamed {
			errs = append(errs, fmt.Errorf("lease %q: %w: %w", d.lease.name, ErrUnknown, why))
		}
	}
	if left > mostNamed {
		errs = append(errs, fmt.Errorf("%w: %d more leases", ErrUnknown, left-mostNamed))
	}
	return errors.Join(errs...)
}

// unreleased says why the record of the lease may still name this session; nil: it does not.
func (d *driver) unreleased() error {
	switch {
	case d.machine.Quiet() && !d.dismissed:
		return nil
	case d.failure != nil:
		return d.failure
	case d.machine.Quiet():
		return nil // released after the session record was given up
	}
	return errNotReleased
}
