package singleton

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/leases"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/stash"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// askInterval is the time between two questions of a proxy for the host, whether it knows the host
// or not.
const askInterval = time.Second

// longestHurry bounds the stop of an instance that must not continue, and the wait for its release.
const longestHurry = time.Second

// hurry returns how long such an instance may handle its mailbox. It leaves half of Drain for the
// last message.
func (l *binding) hurry() time.Duration {
	return min(l.cfg.HandOver, longestHurry, leases.Held.Drain(l.session)/2)
}

// manager is the actor around the machine that decides whether this member hosts. Its child is the
// instance. The same manager value survives a restart of the actor; the child does not.
type manager struct {
	memberLink
	machine  *core.Machine
	shell    *shell.Shell[core.Event, core.Effect]
	state    core.State // last state logged
	kept     *stash.Stash
	clients  clients
	lease    leaseHolder
	child    child
	handover handoverState

	closers []*actor.PID // senders of handOver that wait for the hand-over
	handed  bool         // the machine has handed over
	told    uint64       // sequence number of the last announcement
	claimed bool         // the last announcement was a claim
	reason  any          // why the last instance panicked
	ending  bool         // the actor is stopping
	away    time.Time    // since when the lease store fails; zero: it does not
	shut    bool         // the node does not allow it to host
	short   bool         // it has said that it waits for MinMembers
	differs string       // id of an older member with other settings; empty: none
}

func newManager(l *binding) *manager {
	m := &manager{
		memberLink: newMemberLink(l), kept: stash.New(l.cfg.Buffer), clients: clients{},
		machine: core.New(core.Config{
			HandOver: l.cfg.HandOver, Hurry: l.hurry(),
			BackOff: l.cfg.MinBackoff, MaxBackOff: l.cfg.MaxBackoff, Tries: l.cfg.Tries,
			MinMembers: l.cfg.MinMembers, Settle: l.cfg.Settle,
			AnnouncedFor: announcedFor, Repeat: time.Second,
			Return: 10 * time.Second, MaxReturn: 5 * time.Minute,
			// an honest member has declined by then
			Doubt: l.cfg.StoreTimeout + 5*time.Second,
			Grace: 2 * time.Second, // a claim takes a round trip, and may be lost once
		}),
		lease: newLeaseHolder(l.session.Lease(l.cfg.LeaseName), l.cfg.StoreTimeout),
	}
	m.shell = shell.New(shell.Config[core.Event, core.Effect]{
		Name: l.component(), Core: hosting{m}, Wake: core.Wake{}, CarryOut: m.carryOut,
		Settled: m.settled, Failed: m.failed, Panics: &l.counts.panics,
	})
	return m
}

// hosting is the machine, which also wakes for the clients that a hand-over waits for.
type hosting struct{ m *manager }

func (h hosting) Step(now time.Time, ev core.Event) []core.Effect {
	return h.m.machine.Step(now, ev)
}

func (h hosting) NextWake() time.Time {
	m := h.m
	if m.ending {
		return time.Time{}
	}
	at := m.machine.NextWake()
	if due := m.clients.due(); m.handed && len(m.closers) > 0 && !due.IsZero() &&
		(at.IsZero() || due.Before(at)) {
		at = due
	}
	return at
}

// Receive implements actor.Actor.
func (m *manager) Receive(ctx actor.Context) {
	defer func() {
		m.binding.load.kept.Store(int64(m.kept.Len()))
		m.binding.load.here.Store(m.child.pid != nil)
	}()
	switch msg := ctx.Message().(type) {
	case *actor.Started:
		m.shell.Start(ctx)
		m.binding.members.Subscribe(ctx.Self())
		gate.Of(ctx.ActorSystem()).Subscribe(ctx.Self())
	case *actor.Stopping:
		m.ending = true
		m.step(ctx, core.Close{})
		m.lease.leave()
	case *actor.Stopped: // the instance is gone
		m.shutDown(ctx)
	case *actor.Terminated:
		if m.child.is(msg.Who) && !m.child.there(ctx) {
			gone, left := core.Gone{Run: m.child.run, Ran: m.child.ran()}, m.child.left
			m.child = child{}
			if m.machine.State() == core.Stopping {
				m.handState(ctx, left)
			}
			m.step(ctx, gone)
		}
	case actor.SystemMessage, actor.AutoReceiveMessage, actor.AutoRespond:
	default:
		m.receive(ctx)
	}
}

func (m *manager) receive(ctx actor.Context) {
	switch msg := ctx.Message().(type) {
	case *membership.View:
		m.view = msg
		m.clients.keep(msg)
		m.step(ctx, m.hosts(msg))
		m.compare(ctx, nil)
		m.binding.news.tell(&attend{m.binding})
	case *said:
		if m.view == nil {
			return // it is said again when this actor attends
		}
		m.compare(ctx, msg)
		m.step(ctx, msg.event())
	case *pb.Envelope:
		m.onEnvelope(ctx, msg)
	case *timer.Fired:
		m.shell.Fired(ctx, msg)
	case *gate.State:
		m.shut = !msg.Open
		m.admit(ctx)
	case *instanceUp:
		m.onUp(ctx, msg.run)
	case *attemptEnded:
		m.onAttempt(ctx, msg)
	case *probeEnded:
		m.step(ctx, core.Probed{Probe: msg.probe, Reached: msg.reached, Taken: msg.taken,
			Token: msg.token})
	case *tenureOver:
		m.step(ctx, core.Lost{Token: uint64(msg.grant.Token()), Silent: msg.silent()})
	case *releaseEnded:
		m.onRelease(ctx, msg)
	case *handOver:
		m.closers = append(m.closers, ctx.Sender())
		if m.view != nil && !m.view.Removed {
			m.clients.expectAll(m.shell.Now())
		}
		m.step(ctx, core.Close{})
	default:
		if stray(msg) {
			m.refuse(ctx, stash.Of(ctx), errStray)
			return
		}
		m.pass(ctx)
	}
}

func (m *manager) step(ctx actor.Context, ev core.Event) { m.shell.Step(ctx, ev) }

// settled acts on the present state of the machine.
func (m *manager) settled(ctx actor.Context) {
	if is := m.machine.State(); is != m.state {
		m.log.Info("singleton manager changed state", slog.String("from", m.state.String()),
			slog.String("to", is.String()),
			slog.Uint64("token", m.machine.Token()))
		m.state = is
	}
	m.sayShort()
	if !m.machine.Keeps() {
		m.passOn(ctx)
	}
	m.finish(ctx)
}

// tooLong is how long a member waits for MinMembers before it says so.
const tooLong = 10 * time.Second

// sayShort says once that nobody hosts because members are missing. Announcements, one a second,
// are steps too.
func (m *manager) sayShort() {
	since, seen := m.machine.Waits()
	if m.short || since.IsZero() || m.shell.Now().Sub(since) < tooLong {
		return
	}
	m.short = true
	m.log.Warn("no instance: this member has not seen MinMembers together since its start",
		slog.Int("seen", seen), slog.Int("MinMembers", m.binding.cfg.MinMembers),
		slog.String("then", "it hosts when it sees as many; start them, or set MinMembers lower"))
}

func (m *manager) carryOut(ctx actor.Context, e core.Effect) {
	switch e := e.(type) {
	case core.Acquire:
		m.lease.acquire(ctx, e.Attempt)
	case core.Cancel:
		m.lease.cancel()
	case core.Start:
		m.start(ctx, e)
	case core.Restart:
		m.child.restart()
		m.tellClients(ctx)
	case core.Pause:
		m.clients.each(func(c *client) {
			m.send(ctx, m.self(), c.member, m.binding.cfg.proxyName(), wire.SingletonPaused,
				&pb.SingletonPaused{Token: e.Token, Lost: e.Lost})
		})
	case core.Stop:
		m.child.stop(ctx, m.binding.cfg.StopMessage)
	case core.StopNow:
		m.child.stopNow(ctx)
	case core.Release:
		m.lease.release(ctx, e.Token, m.patience(), m.handover.given)
	case core.TellFree:
		m.send(ctx, m.self(), e.To, m.binding.cfg.managerName(), wire.SingletonFree,
			&pb.SingletonFree{Token: e.Token})
	case core.TellLeaving:
		m.tellLeaving(ctx)
	case core.Announce:
		m.announce(ctx, e)
	case core.Probe:
		m.lease.probe(ctx, e.Probe)
	case core.Follow:
		m.lease.follow(e.On)
	case core.Closed:
		m.handed = true
	}
}

// failed reports an effect that panicked to the machine, as the failure that it expects of such an
// effect.
func (m *manager) failed(ctx actor.Context, e core.Effect) {
	switch e := e.(type) {
	case core.Acquire:
		m.step(ctx, core.Failed{Attempt: e.Attempt})
	case core.Start:
		if m.child.pid == nil {
			m.step(ctx, core.Gone{Run: e.Run})
		}
	case core.Release:
		if grant := m.lease.grant(e.Token); grant != nil { // it would be renewed for ever
			go func() { _ = release(grant, releaseAlone) }()
		}
		m.step(ctx, core.Released{Token: e.Token})
	case core.Probe:
		m.step(ctx, core.Probed{Probe: e.Probe})
	case core.Restart, core.Stop, core.StopNow:
		if m.child.pid != nil {
			ctx.Stop(m.child.pid)
		}
	}
}

// patience bounds the wait for a release. For a removed member it is shorter, because no other
// member waits for the release.
func (m *manager) patience() time.Duration {
	if m.view.Removed {
		return min(m.binding.cfg.HandOver, longestHurry)
	}
	return m.binding.cfg.HandOver
}

func (m *manager) self() core.Member { return member(m.view.Self) }

// start makes the instance, and reports it to the proxies.
func (m *manager) start(ctx actor.Context, e core.Start) {
	grant := m.lease.grant(e.Token)
	if m.ending || grant == nil || grant.Check() != nil {
		m.step(ctx, core.Lost{Token: e.Token})
		m.step(ctx, core.Gone{Run: e.Run})
		return
	}
	first, why, stack := m.produce(grant)
	if why != nil {
		m.reason = why
		about := []any{slog.Any("reason", why), slog.Uint64("token", e.Token)}
		if stack != "" {
			about = append(about, slog.String("stack", stack))
		}
		m.log.Error("singleton instance could not be made", about...)
		m.step(ctx, core.Gone{Run: e.Run})
		return
	}
	m.binding.counts.started.Add(1)
	m.child = m.spawn(ctx, e.Run, grant, first, m.inherited(grant))
	m.tellClients(ctx)
}

// onUp sends the kept messages to the instance.
func (m *manager) onUp(ctx actor.Context, run uint64) {
	if m.child.run != run || m.machine.State() != core.Active {
		return
	}
	m.child.up = true
	for en := range m.kept.Drain() {
		contain.Send(ctx.ActorSystem(), m.child.pid, en.Envelope())
	}
}

// produce calls the user's function and recovers from its panic.
func (m *manager) produce(t coordination.Tenure) (a actor.Actor, why any, stack string) {
	defer func() {
		if p := recover(); p != nil {
			a, why, stack = nil, p, string(debug.Stack())
		}
	}()
	log := func() *slog.Logger { return m.log }
	defer m.binding.making.Begin(log, "making the instance",
		"messages wait, and no other member hosts")()
	if a = m.binding.produce(t); a == nil {
		why = "the function given to New returned nil"
	}
	return a, why, stack
}

// admit passes on whether this member may host at all.
func (m *manager) admit(ctx actor.Context) {
	m.step(ctx, core.Gate{Open: !m.shut && m.differs == ""})
}

// pass forwards a message to the instance, keeps it for the next instance, or passes it on to the
// member that should host.
func (m *manager) pass(ctx actor.Context) {
	switch {
	case m.machine.State() == core.Active && m.child.up:
		contain.Forward(ctx, m.child.pid)
	case !m.machine.Keeps():
		m.forward(ctx, stash.Of(ctx))
	case !m.kept.PushContext(ctx):
		m.refuse(ctx, stash.Of(ctx), ErrBufferFull)
	}
}

// finish answers the callers that wait for the hand-over. It does so when the hand-over is done and
// every proxy that used this host has asked for the next one, unless there will be none: then the
// messages that it had sent here have been passed on.
func (m *manager) finish(ctx actor.Context) {
	if !m.handed || len(m.closers) == 0 {
		return
	}
	if m.clients.expecting(m.shell.Now()) && !m.view.Removed && !m.machine.Last() {
		return // if it was removed, they ask elsewhere
	}
	for _, c := range m.closers {
		contain.Send(ctx.ActorSystem(), c, &handedOver{})
	}
	m.closers = nil
}

// shutDown releases everything that is left, without waiting. The child has terminated.
func (m *manager) shutDown(ctx actor.Context) {
	m.shell.Stop()
	m.binding.members.Unsubscribe(ctx.Self())
	gate.Of(ctx.ActorSystem()).Unsubscribe(ctx.Self())
	m.lease.abandon()
	for e := range m.kept.Drain() {
		m.refuse(ctx, e, errStopped)
	}
	m.binding.actors.Done()
}

func (m *manager) onAttempt(ctx actor.Context, msg *attemptEnded) {
	m.lease.failure = msg.err
	m.noteStore(msg)
	if msg.err != nil {
		m.step(ctx, core.Failed{Attempt: msg.attempt, Final: msg.final(), Taken: msg.taken()})
		return
	}
	m.lease.granted(ctx, msg)
	m.step(ctx, core.Held{Attempt: msg.attempt, Token: uint64(msg.grant.Token())})
}

// noteStore logs in one line that the lease store fails, and in another that it answers again. The
// session logs the fault itself.
func (m *manager) noteStore(msg *attemptEnded) {
	now := m.shell.Now()
	switch failed := msg.err != nil && !msg.taken(); {
	case msg.cancelled:
	case failed && m.away.IsZero():
		m.away = now
		m.log.Info("singleton cannot acquire its lease: this member does not host it until the "+
			"lease store answers", slog.String("address", m.binding.system.Address()),
			slog.Any("error", msg.err))
	case !failed && !m.away.IsZero():
		m.log.Info("singleton can acquire its lease again",
			slog.Duration("after", now.Sub(m.away).Round(time.Millisecond)))
		m.away = time.Time{}
	}
}

func (m *manager) onRelease(ctx actor.Context, msg *releaseEnded) {
	if msg.err != nil {
		m.log.Info("singleton lease possibly not released, it will expire",
			slog.Uint64("token", msg.token), slog.Any("error", msg.err))
	}
	if m.handover.given != nil {
		m.handover.given = nil
		m.loseState(fmt.Errorf("%w: the next host did not confirm it", errState))
	}
	m.lease.forget(msg.token)
	m.step(ctx, core.Released{Token: msg.token, Certain: msg.err == nil})
}

// HandleFailure implements actor.SupervisorStrategy. It restarts an instance that panics after a
// back-off, with its mailbox, unless the instance has been told to stop.
func (m *manager) HandleFailure(_ *actor.ActorSystem, sup actor.Supervisor, who *actor.PID,
	_ *actor.RestartStatistics, reason, _ any) {
	ctx, ok := sup.(actor.Context)
	if !ok || !m.child.is(who) || m.machine.State() != core.Active {
		if m.child.is(who) {
			m.child.planned.Store(false) // its state may be inconsistent
		}
		sup.StopChildren(who)
		return
	}
	m.reason = reason
	m.child.up, m.child.restart = false, func() { sup.RestartChildren(who) }
	m.log.Error("singleton instance panicked", slog.Any("reason", reason),
		slog.Uint64("token", m.machine.Token()), slog.String("stack", m.child.trace()))
	m.step(ctx, core.Broken{Run: m.child.run, Ran: m.child.ran()})
}
