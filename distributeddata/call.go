package distributeddata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/lifecycle"
)

// posted is the request of a direct call. Either the actor takes it or the caller withdraws it.
//
// The actor answers through the call's own channel. A call thus needs no process in the registry
// and no context, which together took a quarter of the processor time of a local update.
type posted struct {
	request
	timeout time.Duration
	taken   atomic.Bool
	answer  chan any // holds one answer; never closed
}

// take reports whether this is the first call of take.
func (p *posted) take() bool { return p.taken.CompareAndSwap(false, true) }

// respond answers the call. It drops a second answer and an answer after the call has returned.
func (p *posted) respond(res any) {
	select {
	case p.answer <- res:
	default:
	}
}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging: the caller gets an error
// instead.
func (p *posted) IgnoreDeadLetterLogging() {}

// errNotTaken says that an incarnation ended before its actor took a request: nothing was done.
var errNotTaken = fmt.Errorf("distributeddata: nothing was done: %w", lifecycle.ErrRejoining)

// ask sends a request to the actor and waits for its answer. At the deadline of ctx the actor
// answers with how far the operation got, so ask waits slightly longer than that. An available
// answer takes precedence over everything else that ends the wait.
func (l *binding) ask(ctx context.Context, m request) (any, error) {
	p := &posted{request: m, timeout: l.timeout(ctx), answer: make(chan any, 1)}
	var late <-chan time.Time
	if _, ok := ctx.Deadline(); !ok {
		t := l.timers.get(l.cfg.OperationTimeout + answerMargin)
		defer l.timers.put(t)
		late = t.C
	}
	// A cancelled call is not started.
	if err := ctx.Err(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		contain.Send(l.system, l.pid, p)
	}
	for done := ctx.Done(); ; {
		select {
		case res := <-p.answer:
			return res, nil
		case <-done:
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				done, late = nil, time.After(answerMargin)
				continue
			}
		case <-late:
		case <-l.ended.Done():
		}
		break
	}
	select {
	case res := <-p.answer:
		return res, nil
	default:
	}
	switch {
	case !l.over():
		p.take() // if the actor has not taken it yet, it never will
		return nil, fmt.Errorf("%w: %w", ErrUnknown,
			l.r.busy(cmp.Or(context.Cause(ctx), context.DeadlineExceeded)))
	case p.take():
		return nil, errNotTaken
	}
	return nil, fmt.Errorf("%w: %w", ErrUnknown, ErrClosed)
}

// timeout returns the time that an operation has under ctx.
func (l *binding) timeout(ctx context.Context) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return max(time.Until(at), time.Nanosecond)
	}
	return l.cfg.OperationTimeout
}

// answerMargin is how long a call waits past its deadline for the actor's report of how far it got.
const answerMargin = 100 * time.Millisecond

// timers is a pool of stopped timers.
type timers struct{ pool sync.Pool }

// get returns a timer that fires after d.
func (p *timers) get(d time.Duration) *time.Timer {
	if t, ok := p.pool.Get().(*time.Timer); ok {
		t.Reset(d)
		return t
	}
	return time.NewTimer(d)
}

// put stops a timer and returns it to the pool.
func (p *timers) put(t *time.Timer) {
	t.Stop()
	p.pool.Put(t)
}
