package coordination

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/coordination/internal/core"
)

// A panic of this library's own code in the loop of a session either hits an effect of a machine,
// or the step of one. After the former the loop continues with the next effect. After the latter
// the state of a lease is uncertain, and the session ends: every tenure is lost at once, and the
// records expire.

var errBroken = errors.New("the lease session was ended by a bug of this library; see the log")

// broken returns an error if a panic of this library's own code has ended the session, and for a
// minute after a panic that has not, and ErrClosed after Close. Otherwise it returns nil. A session
// that has ended has lost every grant, and its calls return ErrClosed; unless you have closed it,
// restart the process. Package node makes this part of the member's health.
func (s *Session) broken() error {
	select {
	case <-s.done:
		if errors.Is(s.result, errBroken) {
			return s.result
		}
		return ErrClosed
	default:
	}
	return s.bugs.Check()
}

// closed returns the error of a call that comes after the end of the session.
func (s *Session) closed() error {
	if errors.Is(s.result, errBroken) {
		return fmt.Errorf("%w: %w", ErrClosed, errBroken)
	}
	return ErrClosed
}

// bug reports a panic. Call it in the deferred function that has recovered p.
func (s *Session) bug(while string, p any) {
	s.count(func(st *Status) { st.Panics++ })
	s.bugs.Report(s.cfg.Logger, "session "+s.cfg.Owner, while, p)
}

// guard is deferred while an effect is carried out. After a panic it reports to the machine that a
// call of the store has failed, and answers the caller of an Answer.
func (d *driver) guard(e core.Effect) {
	p := recover()
	if p == nil {
		return
	}
	d.lease.s.bug(fmt.Sprintf("carrying out a %T", e), p)
	var failed core.Event
	switch e := e.(type) {
	case core.Load:
		failed = core.Loaded{Op: e.Op, Err: errBroken}
	case core.Swap:
		failed = core.Swapped{Op: e.Op, Status: core.Unknown, Err: errBroken}
	case core.LoadSession:
		failed = core.SessionLoaded{Op: e.Op, Err: errBroken}
	case core.Answer:
		if reply, ok := d.replies[e.ID]; ok {
			delete(d.replies, e.ID)
			reply <- answer{Answer: core.Answer{ID: e.ID, Outcome: core.Doubt, Err: errBroken}}
		}
	}
	if failed != nil {
		d.lease.s.work.Go(func() { d.lease.s.post(d.lease, failed, nil) })
	}
}

// broken ends the session after a panic of a step.
func (l *loop) broken(p any) {
	l.s.bug("driving the leases; the session ends, and all its leases are lost", p)
	l.s.mu.Lock()
	l.s.mu.closed = true
	l.s.mu.Unlock()
	end := ending{&LostError{Why: Closed, Err: errBroken}, true}
	for _, d := range l.leases {
		if d.grant != nil {
			d.grant.finish(end)
		}
	}
	if reply := l.now.reply; reply != nil {
		select {
		case reply <- answer{Answer: core.Answer{Outcome: core.Shut}}:
		default: // answered already
		}
	}
	l.halt(fmt.Errorf("%w: %w", ErrUnknown, errBroken))
}
