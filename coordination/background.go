package coordination

import (
	"context"
	"fmt"
	"sync/atomic"
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
	tell := func(m any) { system.Root.Send(pid, m) }
	return l.inBackground(l.Acquire, tell, func(g *Grant, tell func(any)) {
		tell(&Acquired{g})
		forward(g, tell)
	}, func(err error) any { return &AcquireResult{Err: err} })
}

// forward tells what happens to a grant from now on.
func forward(g *Grant, tell func(any)) {
	g.OnLost(func(e *LostError) { tell(&LeaseLost{g, e}) })
	g.OnNearExpiry(func(left time.Duration) { tell(&LeaseNearExpiry{g, left}) })
}

// inBackground acquires beside the caller. held is called with the grant, or failed makes a message of
// the error. After cancel nothing more is told, and what was acquired is released.
func (l *Lease) inBackground(acquire func(context.Context) (*Grant, error), tell func(any),
	held func(*Grant, func(any)), failed func(error) any) (cancel func()) {
	ctx, stop := context.WithCancel(context.Background())
	wanted := func(m any) {
		if ctx.Err() == nil {
			tell(m)
		}
	}
	var grant atomic.Pointer[Grant]
	started := l.s.spawn(func() {
		g, err := acquire(ctx)
		if err != nil {
			wanted(failed(err))
			return
		}
		grant.Store(g)
		held(g, wanted)
		context.AfterFunc(ctx, g.abandon)
	})
	if !started {
		go wanted(failed(fmt.Errorf("lease %q: %w", l.name, ErrClosed)))
	}
	return func() {
		stop()
		if g := grant.Load(); g != nil {
			g.finish(ending{ErrReleased, true}) // the store is told by abandon
		}
	}
}
