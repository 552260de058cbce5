package coordination

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// Close ends every tenure with the cause Closed, and waits until its work has stopped and its lease
// is released: by Do and Gated when their work has returned, and by the program for a grant of
// Lease.Acquire or TryAcquire. A lease that is not released within Config.Drain is left as it is,
// since its work may still run: it expires, as after a crash. With Config.Forever it does not.
//
// Close returns nil when every lease is certainly released or expired. Otherwise the error is
// ErrUnknown and names the leases, each with the last answer of the store. Those leases expire by
// themselves. Close stops trying when ctx ends, or after Config.Drain and six times
// Config.OperationTimeout. If the session renews one record for all its leases, Close gives that
// record up after Config.Drain and three times Config.OperationTimeout. From then on no session
// regards this one as a holder, even where the record of a lease cannot be read or written and
// still names it.
//
// After Close has returned, no goroutine of the session runs. A second call returns the same
// result.
func (s *Session) Close(ctx context.Context) error {
	if !s.opened() {
		return errNotOpened
	}
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
	// releaseOperations is how many store calls a release may take after the Drain: a write, a read
	// after a conflict, and another write.
	releaseOperations = 3
	// closeOperations adds the same for the record of the session.
	closeOperations = 2 * releaseOperations
	// mostNamed bounds the leases that the error of Close names, and its lines.
	mostNamed = 8
)

var (
	errNotReleased  = errors.New("not released in time: like that of a crashed holder, it expires")
	errStillWorking = errors.New("its grant was not released within Drain, so it is left to " +
		"expire: release it before Close")
)

// closing is the progress of Close.
type closing struct {
	begun  bool
	since  time.Duration // on the monotonic clock
	keeper bool          // the session record is being given up
}

// close ends every tenure. Only the first call has an effect.
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

// finished reports whether Close has nothing left to do.
func (l *loop) finished() bool {
	return l.closing.begun && l.quiet() && (l.keeper == nil || l.keeper.machine.Quiet() || l.left())
}

// left reports whether the work of a lease has not stopped. Then the session record is kept too,
// and expires: without it, the lease would be free at once.
func (l *loop) left() bool {
	return slices.ContainsFunc(l.leases, func(d *driver) bool { return d.left() })
}

func (d *driver) left() bool {
	m, is := d.machine.(*core.Machine)
	return is && m.Left()
}

// overdue reports whether Close has used up its Drain and the time of the given number of store
// calls.
func (l *loop) overdue(operations time.Duration) bool {
	return l.closing.begun && l.untilPatienceFor(operations) <= 0
}

func (l *loop) untilPatienceFor(operations time.Duration) time.Duration {
	end := l.closing.since + l.s.cfg.Drain + operations*l.s.cfg.OperationTimeout
	return end - l.s.now().Mono
}

// untilOverdue returns the time until Close gives something up.
func (l *loop) untilOverdue() time.Duration {
	switch {
	case !l.closing.begun:
		return time.Hour
	case l.keeper == nil || l.closing.keeper:
		return l.untilPatienceFor(closeOperations)
	}
	return l.untilPatienceFor(releaseOperations)
}

// dismiss gives up the session record. With it ends every lease that is not released by then.
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

// end stops the loop. Leases that are not released are left to expire.
func (l *loop) end() { l.halt(l.unreleased()) }

// halt stops the loop with the result of Close.
func (l *loop) halt(result error) {
	l.s.result = result
	for _, d := range l.leases {
		d.shut()
	}
	l.s.abort()
	_ = l.s.meters.unobserve() // the provider may be gone by now
	close(l.s.done)
}

// unreleased returns an error that names the leases whose records may still name this session.
func (l *loop) unreleased() error {
	var whys, errs []error
	names := map[string][]string{} // by the text of the reason
	more := 0
	for _, d := range l.leases {
		why := d.unreleased()
		switch {
		case why == nil:
			continue
		case len(names[why.Error()]) > 0:
		case len(whys) == mostNamed:
			more++
			continue
		default:
			whys = append(whys, why)
		}
		names[why.Error()] = append(names[why.Error()], d.lease.name)
	}
	for _, why := range whys {
		errs = append(errs, fmt.Errorf("%s: %w: %w", some(names[why.Error()]), ErrUnknown, why))
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("%w: %d more leases", ErrUnknown, more))
	}
	return errors.Join(errs...)
}

// some names leases, but not very many.
func some(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("lease %q", names[0])
	}
	first := names[:min(len(names), mostNamed)]
	s := fmt.Sprintf("%d leases, %q", len(names), first)
	if len(first) < len(names) {
		s += " and others"
	}
	return s
}

// unreleased returns why the record of the lease may still name this session, or nil if it does
// not.
func (d *driver) unreleased() error {
	switch {
	case d.left():
		return errStillWorking
	case d.machine.Quiet() && !d.dismissed:
		return nil
	case d.failure != nil:
		return d.failure
	case d.machine.Quiet():
		return nil // released after the session record was given up
	}
	return errNotReleased
}
