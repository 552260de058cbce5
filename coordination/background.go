package coordination

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// AcquireTo acquires in the background and tells the actor: one *Acquired, then *LeaseNearExpiry as
// it happens and one *LeaseLost if the tenure ends otherwise than by a release. cancel withdraws, or
// releases what has been acquired, without waiting; call it when the actor's work has ended, at the
// latest in Stopped, as often as you like. If the session is closed before, the actor gets an
// *AcquireResult with the error.
//
// After a loss, call cancel as soon as the work has ended, then AcquireTo again.
func (l *Lease) AcquireTo(system *actor.ActorSystem, pid *actor.PID) (cancel func()) {
	send := func(m any) { system.Root.Send(pid, m) }
	return l.inBackground(l.Acquire, func(g *Grant) {
		send(&Acquired{g})
		forward(g, send)
	}, func(err error) { send(&AcquireResult{Err: err}) })
}

// forward sends what happens to a grant from now on.
func forward(g *Grant, send func(any)) {
	g.OnLost(func(e *LostError) { send(&LeaseLost{g, e}) })
	g.OnNearExpiry(func(left time.Duration) { send(&LeaseNearExpiry{g, left}) })
}

// inBackground acquires beside the caller. held is called with the grant, or failed unless cancel was
// called. cancel releases the grant once held has returned.
func (l *Lease) inBackground(acquire func(context.Context) (*Grant, error), held func(*Grant), failed func(error)) (cancel func()) {
	ctx, stop := context.WithCancel(context.Background())
	started := l.s.spawn(func() {
		g, err := acquire(ctx)
		switch {
		case err == nil:
			held(g)
			context.AfterFunc(ctx, g.abandon)
		case ctx.Err() == nil:
			failed(err)
		}
	})
	if !started {
		go failed(fmt.Errorf("lease %q: %w", l.name, ErrClosed))
	}
	return stop
}
