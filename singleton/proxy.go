package singleton

import (
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/stash"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// proxy is the actor that receives this member's messages for the singleton. It keeps them until
// the host has reported that it hosts, and then sends them there, in order.
type proxy struct {
	memberLink
	route  *core.Route
	shell  *shell.Shell[core.Event, core.Effect]
	kept   *stash.Stash
	host   *actor.PID // the host's manager; nil: not known
	local  bool       // the host is this member
	closer *actor.PID // sender of drain that waits until kept is empty
	begun  bool       // the member is up
}

// begun reports to the proxy that its member is up, and that the manager, if any, runs. The proxy
// must not ask it earlier: Proto.Actor registers an actor before its mailbox can take messages.
type begun struct{}

// listen subscribes to views, again after a restart of the actor.
func (p *proxy) listen(ctx actor.Context) {
	if p.begun {
		p.binding.members.Subscribe(ctx.Self())
	}
}

func newProxy(l *binding) *proxy {
	p := &proxy{memberLink: newMemberLink(l), route: core.NewRoute(askInterval),
		kept: stash.New(l.cfg.Buffer)}
	p.shell = shell.New(shell.Config[core.Event, core.Effect]{Name: l.component(),
		Core: p.route, Wake: core.Wake{}, CarryOut: p.carryOut, Settled: p.settled,
		Failed: p.failed, Panics: &l.counts.panics})
	return p
}

// Receive implements actor.Actor.
func (p *proxy) Receive(ctx actor.Context) {
	defer func() { p.binding.load.queued.Store(int64(p.kept.Len())) }()
	switch m := ctx.Message().(type) {
	case *actor.Started:
		p.shell.Start(ctx)
		p.listen(ctx)
	case *actor.Stopped:
		p.shutDown(ctx)
	case actor.SystemMessage, actor.AutoReceiveMessage, actor.AutoRespond:
	case *membership.View:
		p.view = m
		p.step(ctx, p.hosts(m))
		p.binding.news.tell(&attend{p.binding})
	case *said:
		if p.view == nil {
			return // it is said again when this actor attends
		}
		p.step(ctx, m.event())
		p.again(ctx)
	case *pb.Envelope:
		p.onEnvelope(ctx, m)
	case *timer.Fired:
		p.shell.Fired(ctx, m)
	case *begun:
		p.begun = true
		p.listen(ctx)
	case *drain:
		p.closer = ctx.Sender()
		p.finish(ctx)
	default:
		p.pass(ctx)
	}
}

func (p *proxy) step(ctx actor.Context, ev core.Event) { p.shell.Step(ctx, ev) }

func (p *proxy) carryOut(ctx actor.Context, e core.Effect) {
	switch e := e.(type) {
	case core.Ask:
		if p.again(ctx) {
			return
		}
		p.send(ctx, member(p.view.Self), e.To, p.binding.cfg.managerName(), wire.SingletonIdentify,
			&pb.SingletonIdentify{Round: e.Round})
	case core.Found:
		p.found(ctx, e)
	case core.Hidden:
		p.hidden()
	case core.Orphaned:
		p.binding.calls.Lose(func(token uint64) bool { return token <= e.Token })
	}
}

// again begins another search if the last effect of one has panicked, and reports that; see failed.
func (p *proxy) again(ctx actor.Context) bool {
	host, token, known := p.route.Host()
	if !known || p.host != nil {
		return false
	}
	p.step(ctx, core.Paused{From: host, Token: token})
	return true
}

// failed continues after an effect that panicked. The proxy keeps messages until it has found the
// host again, after the next question or announcement.
func (p *proxy) failed(_ actor.Context, e core.Effect) {
	if _, found := e.(core.Found); found {
		p.host = nil
	}
}

// settled gives up if the member was removed, and answers the caller of drain.
func (p *proxy) settled(ctx actor.Context) {
	if p.view.Removed {
		p.giveUp(ctx, ErrClosed)
	}
	p.finish(ctx)
}

// found sends the kept messages.
func (p *proxy) found(ctx actor.Context, e core.Found) {
	p.log.Info("singleton found", slog.String("address", e.Host.Address),
		slog.Uint64("token", e.Token))
	p.host = actor.NewPID(e.Host.Address, p.binding.cfg.managerName())
	p.local = e.Host.ID == p.view.Self.ID
	p.binding.place.found(e.Host.Address, coordination.Token(e.Token))
	for en := range p.kept.Drain() {
		p.deliver(ctx, en)
	}
}

func (p *proxy) hidden() {
	p.host = nil
	p.binding.place.hidden()
}

// pass sends a message of a user to the host, or keeps it until the host is known.
func (p *proxy) pass(ctx actor.Context) {
	_, byAsk := ctx.Message().(*asked)
	switch {
	case stray(ctx.Message()):
		p.refuse(ctx, stash.Of(ctx), errStray)
	case p.host != nil && !byAsk && !unaddressed(ctx.Sender()) &&
		(p.local || portable(ctx.Message())):
		contain.Forward(ctx, p.host)
	case p.host != nil:
		p.deliver(ctx, stash.Of(ctx))
	case p.view != nil && p.view.Removed:
		p.refuse(ctx, stash.Of(ctx), ErrClosed)
	case !p.kept.PushContext(ctx):
		p.refuse(ctx, stash.Of(ctx), ErrBufferFull)
	}
}

func (p *proxy) deliver(ctx actor.Context, e stash.Entry) {
	inner, byAsk := unwrap(e)
	if !p.local && !portable(inner.Message) {
		p.refuse(ctx, e, errNotProtobuf)
		return
	}
	if byAsk {
		_, token, _ := p.route.Host()
		p.binding.calls.Sent(e.Message.(*asked).call, token)
	}
	if unaddressed(inner.Sender) {
		inner.Sender = actor.NewPID(p.view.Self.Address, inner.Sender.Id)
	}
	contain.Send(ctx.ActorSystem(), p.host, inner.Envelope())
}

// unaddressed reports whether a sender got its PID before this system had an address. At another
// member that PID would name a process there, which might exist.
func unaddressed(sender *actor.PID) bool { return sender != nil && sender.Address == local }

func (p *proxy) onEnvelope(ctx actor.Context, env *pb.Envelope) {
	from, manifest, payload, ok := p.open(env)
	if !ok {
		return
	}
	switch manifest {
	case wire.SingletonHost:
		var h pb.SingletonHost
		if p.decode(payload, &h) {
			p.step(ctx, core.Host{From: from, Round: h.Round, Token: h.Token})
		}
	case wire.SingletonPaused:
		var h pb.SingletonPaused
		if p.decode(payload, &h) {
			p.step(ctx, core.Paused{From: from, Token: h.Token, Lost: h.Lost})
		}
	case wire.SingletonLeaving:
		p.step(ctx, core.Leaving{Member: from})
	default:
		p.ignore(slog.Any("unknown", manifest))
	}
}

// giveUp refuses the kept messages.
func (p *proxy) giveUp(ctx actor.Context, why error) {
	for e := range p.kept.Drain() {
		p.refuse(ctx, e, why)
	}
}

// finish answers the caller of drain when no message is kept, or when no host will be found for
// them.
func (p *proxy) finish(ctx actor.Context) {
	if p.closer == nil {
		return
	}
	if !p.route.Hopeful() {
		p.giveUp(ctx, errStopped)
	}
	if p.kept.Len() == 0 {
		contain.Send(ctx.ActorSystem(), p.closer, &drained{})
		p.closer = nil
	}
}

func (p *proxy) shutDown(ctx actor.Context) {
	p.shell.Stop()
	p.binding.members.Unsubscribe(ctx.Self())
	p.giveUp(ctx, errStopped)
	p.hidden()
	p.binding.actors.Done()
}
