package coordination

import (
	"context"
	"errors"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/stash"
)

// Gated returns props of an actor that works only under the lease. Its PID accepts messages from
// the start and keeps up to limit of them, with sender and header, until the session holds the
// lease. Messages beyond limit go to the dead letters, and a log entry counts them. Once the lease
// is held, produce makes the worker, a child actor that lives for one tenure, and the gated actor
// forwards messages to it in order.
//
//	AcquiringLease ── held ─▶ Active ── lost or released ─▶ Stopping ── worker gone ─▶ AcquiringLease
//
// On a loss the worker is stopped immediately, which is Config.Drain before another session can
// hold the lease. The message in progress may finish, messages in the worker's mailbox are lost,
// and later messages are kept for the next worker. A worker whose Receive takes longer than Drain
// overlaps with the next holder; then only its token protects. When the worker has stopped, the
// gated actor releases the lease and acquires it again.
//
// produce runs in its own goroutine; messages are kept until it returns. If it panics, exits its
// goroutine or returns nil, the gated actor stops and logs the reason.
//
// Stopping the gated actor stops the worker and then releases the lease without waiting. If the
// worker stops itself, the gated actor stops too. The gated actor also stops when the session is
// closed, and when the member of its actor system leaves the cluster, which then waits for the
// release.
func Gated(l *Lease, limit int, produce func(Tenure) actor.Actor) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &gate{lease: l.orNone(), produce: produce, kept: stash.New(limit)}
	})
}

// gate is in the state AcquiringLease while worker is nil. Otherwise it is Active, or Stopping if
// the grant is over.
type gate struct {
	lease   *Lease
	produce func(Tenure) actor.Actor
	kept    *stash.Stash
	dropped uint64 // at the last log entry

	claim  *background
	grant  *Grant
	over   bool // the grant is over; the worker may still run
	worker *actor.PID
}

// Private messages of a gate. Each names its tenure.
type (
	gateHeld struct{ grant *Grant }
	gateMade struct {
		grant *Grant
		actor actor.Actor
		err   error
	}
	gateOver   struct{ grant *Grant }
	gateFailed struct{ err error }
)

func (g *gate) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		g.acquire(ctx)
	case *gateHeld:
		g.begin(ctx, m.grant)
	case *gateMade:
		g.activate(ctx, m)
	case *gateOver:
		g.end(ctx, m.grant)
	case *actor.Terminated:
		g.workerGone(ctx, m.Who)
	case *gateFailed:
		g.fail(ctx, m.err)
	case *actor.Stopped, *actor.Restarting:
		if g.worker == nil { // otherwise the worker releases when it has stopped
			g.claim.cancel()
		}
		g.kept.Discard(ctx)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		g.pass(ctx)
	}
}

func (g *gate) acquire(ctx actor.Context) {
	system, self := ctx.ActorSystem(), ctx.Self()
	tell := func(m any) { contain.Send(system, self, m) }
	g.claim = g.lease.inBackground(system, g.lease.Acquire, tell,
		func(grant *Grant, tell func(any)) {
			tell(&gateHeld{grant})
			context.AfterFunc(grant.ctx, func() { tell(&gateOver{grant}) })
		}, func(err error) any { return &gateFailed{err} })
}

// begin starts produce, unless the grant is already over.
func (g *gate) begin(ctx actor.Context, grant *Grant) {
	if grant.ctx.Err() != nil {
		g.again(ctx)
		return
	}
	g.grant, g.over = grant, false
	system, self := ctx.ActorSystem(), ctx.Self()
	produceAside(g.produce, grant, func(a actor.Actor, err error) {
		contain.Send(system, self, &gateMade{grant, a, err})
	})
}

// activate starts the worker and sends it the kept messages.
func (g *gate) activate(ctx actor.Context, m *gateMade) {
	switch {
	case m.grant != g.grant:
		return
	case m.err != nil:
		g.fail(ctx, m.err)
		return
	case g.over:
		g.again(ctx)
		return
	}
	g.worker = ctx.Spawn(workerProps(m, g.produce, g.claim.cancel))
	for e := range g.kept.Drain() {
		contain.Send(ctx.ActorSystem(), g.worker, e.Envelope())
	}
	if n := g.kept.Dropped() - g.dropped; n > 0 {
		g.dropped += n
		ctx.Logger().Warn("lease-gated actor dropped messages", slog.String("lease", g.lease.name),
			slog.Uint64("dropped", n))
	}
}

// end stops the worker of a tenure that is over.
func (g *gate) end(ctx actor.Context, grant *Grant) {
	if grant != g.grant || g.over {
		return
	}
	g.over = true
	if g.worker != nil {
		ctx.Stop(g.worker)
	}
}

// workerGone acquires again, or stops the gate if the worker stopped by itself. The worker has
// already released the lease. A worker that is still registered is alive, whatever the message
// says.
func (g *gate) workerGone(ctx actor.Context, who *actor.PID) {
	if g.worker == nil || !who.Equal(g.worker) {
		return
	}
	if _, there := ctx.ActorSystem().ProcessRegistry.GetLocal(g.worker.Id); there {
		return
	}
	g.worker = nil
	if !g.over {
		ctx.Stop(ctx.Self())
		return
	}
	g.again(ctx)
}

// again releases the tenure and acquires another.
func (g *gate) again(ctx actor.Context) {
	g.grant = nil
	g.claim.cancel()
	g.acquire(ctx)
}

func (g *gate) fail(ctx actor.Context, err error) {
	level := slog.LevelWarn
	if errors.Is(err, lifecycle.ErrStopping) {
		level = slog.LevelDebug
	}
	ctx.Logger().Log(context.Background(), level, "lease-gated actor stops",
		slog.String("lease", g.lease.name),
		slog.Any("error", err))
	ctx.Stop(ctx.Self())
}

// pass forwards the message to the worker, or keeps it.
func (g *gate) pass(ctx actor.Context) {
	switch {
	case g.worker != nil && !g.over:
		contain.Forward(ctx, g.worker)
	case !g.kept.PushContext(ctx):
		contain.DeadLetter(ctx.ActorSystem(), ctx.Self(), stash.Of(ctx).Envelope())
	}
}
