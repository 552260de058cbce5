package coordination

import (
	"context"
	"errors"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/stash"
)

// Gated returns props of an actor that works only under the lease. Its PID takes messages from the
// start and keeps up to limit of them, with sender and header, until the lease is held; what does not
// fit goes to the dead letters and is counted in the log. Then produce makes the worker, a child that
// lives for one tenure, and messages flow to it in order.
//
//	AcquiringLease ── held ─▶ Active ── lost or released ─▶ Stopping ── worker gone ─▶ AcquiringLease
//
// On a loss the worker is stopped at once, which is Config.Drain before anybody else can hold the
// lease: a message under way may finish, those in the worker's mailbox are lost, later ones are kept
// for the next worker. A worker whose Receive takes longer than Drain overlaps with the next holder;
// only its token protects then. When the worker is gone the lease is released and acquired again.
//
// produce runs in a goroutine of its own; until it returns, messages are kept. If it panics, ends its
// goroutine or returns nil, the gated actor stops and logs why.
//
// Stopping the gated actor stops the worker, then releases without waiting. A worker that stops itself
// ends the gated actor, too. The gated actor stops when the session is closed, and when the member of its
// actor system leaves the cluster, which then waits until the lease is released.
func Gated(l *Lease, limit int, produce func(Tenure) actor.Actor) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &gate{lease: l, produce: produce, kept: stash.New(limit)}
	})
}

// gate is in the state AcquiringLease while worker is nil, else Active, or Stopping when the grant is
// over.
type gate struct {
	lease   *Lease
	produce func(Tenure) actor.Actor
	kept    *stash.Stash
	dropped uint64 // at the last log entry

	claim  *background
	grant  *Grant
	over   bool // the grant is, the worker may not be
	worker *actor.PID
}

// Private messages of a gate; each names the tenure it speaks of.
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
		if g.worker == nil { // else it releases when it has stopped
			g.claim.cancel()
		}
		g.flushToDeadLetters(ctx)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		g.pass(ctx)
	}
}

func (g *gate) acquire(ctx actor.Context) {
	system, self := ctx.ActorSystem(), ctx.Self()
	tell := func(m any) { system.Root.Send(self, m) }
	g.claim = g.lease.inBackground(system, g.lease.Acquire, tell, func(grant *Grant, tell func(any)) {
		tell(&gateHeld{grant})
		context.AfterFunc(grant.ctx, func() { tell(&gateOver{grant}) })
	}, func(err error) any { return &gateFailed{err} })
}

// begin has the worker made, unless the grant is over already.
func (g *gate) begin(ctx actor.Context, grant *Grant) {
	if grant.ctx.Err() != nil {
		g.again(ctx)
		return
	}
	g.grant, g.over = grant, false
	system, self := ctx.ActorSystem(), ctx.Self()
	produceAside(g.produce, grant, func(a actor.Actor, err error) {
		system.Root.Send(self, &gateMade{grant, a, err})
	})
}

// activate starts the worker and hands it what was kept.
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
		ctx.Send(g.worker, e.Envelope())
	}
	if n := g.kept.Dropped() - g.dropped; n > 0 {
		g.dropped += n
		ctx.Logger().Warn("lease-gated actor had no room for messages", slog.String("lease", g.lease.name),
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

// workerGone tries again, unless the worker went by itself. It has released the lease. A worker that
// can be reached is there, whatever a message says.
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

// again lets the tenure go and acquires another.
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
	ctx.Logger().Log(context.Background(), level, "lease-gated actor stops", slog.String("lease", g.lease.name),
		slog.Any("error", err))
	ctx.Stop(ctx.Self())
}

// pass forwards to the worker, or keeps the message.
func (g *gate) pass(ctx actor.Context) {
	switch {
	case g.worker != nil && !g.over:
		ctx.Forward(g.worker)
	case !g.kept.PushContext(ctx):
		ctx.ActorSystem().DeadLetter.SendUserMessage(ctx.Self(), stash.Of(ctx).Envelope())
	}
}

func (g *gate) flushToDeadLetters(ctx actor.Context) {
	for e := range g.kept.Drain() {
		ctx.ActorSystem().DeadLetter.SendUserMessage(ctx.Self(), e.Envelope())
	}
}
