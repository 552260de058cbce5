package coordination

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/lifecycle"
)

// AcquireTo acquires the lease in the background and sends messages to the actor: one *Acquired,
// then *LeaseNearExpiry for each episode, and one *LeaseLost if the tenure ends other than by a
// release. cancel withdraws the request, or releases the acquired grant, without waiting. Call it
// when the actor's work has stopped, at the latest in Stopped; it may be called more than once. If
// the session is closed first, the actor gets an *AcquireResult with the error.
//
// After a loss, call cancel as soon as the work has stopped, then AcquireTo again.
//
// When the member of system leaves its cluster, or ends an incarnation, the tenure ends: the actor
// gets *LeaseLost with the reason Closed and has Config.Drain to call cancel. If it does not, the
// member stops with an error, and the lease is free when cancel is called or the tenure has
// expired. If the request is still pending, or AcquireTo is called later, the actor gets an
// *AcquireResult.
func (l *Lease) AcquireTo(system *actor.ActorSystem, pid *actor.PID) (cancel func()) {
	tell := sender(system, pid)
	l = l.orNone()
	return l.inBackground(system, l.Acquire, tell, func(g *Grant, tell func(any)) {
		tell(&Acquired{g})
		forward(g, tell)
	}, func(err error) any { return &AcquireResult{Err: err} }).cancel
}

// sender returns a function that sends to an actor. If the system or pid is nil, sender panics, in
// the goroutine of its caller: a panic of the function would end the process.
func sender(system *actor.ActorSystem, pid *actor.PID) func(any) {
	_, _ = system.Root, pid.Id
	return func(m any) { contain.Send(system, pid, m) }
}

// forward reports the events of a grant from now on.
func forward(g *Grant, tell func(any)) {
	g.OnLost(func(e *LostError) { tell(&LeaseLost{g, e}) })
	g.OnNearExpiry(func(left time.Duration) { tell(&LeaseNearExpiry{g, left}) })
}

// background is an acquire beside its caller, and the resulting grant, until cancel.
type background struct {
	lease  *Lease
	tell   func(any)
	failed func(error) any // makes a message from an error
	ctx    context.Context // ends with cancel
	stop   context.CancelFunc
	leave  func() // unregisters the stop hook of the actor system

	mu    sync.Mutex
	grant *Grant
}

// inBackground acquires for an actor of system. It calls held with the grant, or sends the message
// that failed makes from the error. After cancel it sends nothing more and releases what was
// acquired.
func (l *Lease) inBackground(system *actor.ActorSystem,
	acquire func(context.Context) (*Grant, error), tell func(any),
	held func(*Grant, func(any)), failed func(error) any) *background {
	b := &background{lease: l, tell: tell, failed: failed, leave: func() {}}
	b.ctx, b.stop = context.WithCancel(context.Background())
	if err := l.check(); err != nil {
		go b.fail(err)
		return b
	}
	leave, err := lifecycle.OnStop(system, lifecycle.Leases, fmt.Sprintf("lease %q", l.name),
		b.endIncarnation)
	if err != nil {
		go b.fail(fmt.Errorf("lease %q: %w", l.name, err))
		return b
	}
	b.leave = leave
	if !l.s.spawn(func() { b.run(acquire, held) }) {
		go b.fail(fmt.Errorf("lease %q: %w", l.name, ErrClosed))
	}
	return b
}

func (b *background) run(acquire func(context.Context) (*Grant, error),
	held func(*Grant, func(any))) {
	g, err := acquire(b.ctx)
	if err != nil {
		b.fail(err)
		return
	}
	b.mu.Lock()
	b.grant = g
	b.mu.Unlock()
	held(g, b.say)
	context.AfterFunc(b.ctx, g.releaseSoon)
}

// say sends m unless the acquire was cancelled.
func (b *background) say(m any) {
	if b.ctx.Err() == nil {
		b.tell(m)
	}
}

func (b *background) fail(err error) {
	b.leave()
	b.say(b.failed(err))
}

// cancel withdraws the acquire, or ends the grant and lets it be released.
func (b *background) cancel() {
	b.leave()
	if g := b.withdraw(); g != nil {
		b.stop() // first, so that no message is sent; releaseSoon follows
		g.finish(ending{ErrReleased, true})
	}
}

// withdraw stops an acquire that has not brought a grant. Otherwise it returns the grant.
func (b *background) withdraw() *Grant {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.grant == nil {
		b.stop()
	}
	return b.grant
}

// endIncarnation is a stop hook of the actor system. It ends the tenure as Session.Close does, and
// waits for cancel and for the store, but for cancel not longer than Config.Drain. Without cancel
// the lease is left to expire, since its work may still run.
func (b *background) endIncarnation(ctx context.Context) error {
	g := b.withdraw()
	if g == nil {
		b.tell(b.failed(fmt.Errorf("lease %q: %w", b.lease.name, lifecycle.ErrStopping)))
		return nil
	}
	g.abandon(lifecycle.ErrStopping)
	in, cancel := b.lease.s.timeoutAfter(ctx, b.lease.s.cfg.Drain)
	defer cancel()
	select {
	case <-b.ctx.Done():
		return g.Release(ctx)
	case <-in.Done():
		return fmt.Errorf("lease %q: %w: %w", b.lease.name, ErrUnknown, errStillWorking)
	}
}
