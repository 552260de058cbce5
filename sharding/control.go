package sharding

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/stash"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// control is the actor around the core of a region. It receives the messages of the protocol and
// the deliveries, and takes the messages that wait from the hosted shards. The value survives a
// restart of the actor.
type control struct {
	binding *binding
	log     *slog.Logger
	region  *core.Region
	flows   map[core.Member]*lane.Flow // to the members of the view
	shell   *shell.Shell[core.Event, core.Effect]
	view    *membership.View
	self    core.Member
	peers   peers
	leases  *leaseHolder // nil: a proxy
	tick    *timer.Timer
	begun   bool
	early   *heard     // of the coordinator here, before the first view
	stir    bool       // the phase of a shard may have changed
	store   core.Store // as last passed to the core
	tripped bool       // the log says so
	running int        // shards whose entities run or are stopping here
	told    int        // their part of the limit, as last sent to them

	orphaned map[core.Tenure]bool // whose calls have not been failed yet

	attempts bugs.Sparse // failed attempts to acquire leases, in the log

	surveys map[uint64]*survey // in progress, by number

	leaving *actor.PID // waits until no shard is left on this member
	last    bool       // no message of this process follows
	quit    bool       // stop without waiting for entities
}

// Messages for the control actor.
type (
	begun struct{}            // the member is up
	waits struct{ shard int } // messages of this process wait
	ended struct {            // all entities of a tenure have stopped
		shard int
		token uint64
	}
	heard struct { // a message of this member to itself
		message core.Message
	}
	known  core.Known // entries of the replicated table
	leave  struct{}   // give up the shards, then answer
	flush  struct{}   // no message of this process follows: answer when the others have them all
	hurry  struct{}   // stop waiting for entities
	gone   struct{}   // answers leave, flush and hurry
	report struct {   // to the coordinator
		from   core.Member
		report core.Report
	}
)

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*waits) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*ended) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*heard) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*known) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*report) IgnoreDeadLetterLogging() {}

func newControl(l *binding) *control {
	c := &control{binding: l, log: l.log, region: core.NewRegion(l.cfg.core()),
		flows: map[core.Member]*lane.Flow{}}
	if l.session != nil {
		c.leases = newLeaseHolder(l)
	}
	c.shell = shell.New(shell.Config[core.Event, core.Effect]{
		Name: l.component(), Core: c.region, Wake: core.Wake{}, CarryOut: c.carryOut,
		Settled: c.settled, Failed: c.failed, Panics: &l.counts.panics,
	})
	return c
}

// Receive implements actor.Actor.
func (c *control) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		c.shell.Start(ctx)
		if c.tick == nil {
			c.tick = timer.New(ctx.ActorSystem(), ctx.Self())
		}
		c.listen(ctx)
	case *begun:
		c.begun = true
		c.listen(ctx)
	case *actor.Stopped:
		c.shutDown(ctx)
	case actor.SystemMessage, actor.AutoReceiveMessage, actor.AutoRespond:
	case *waits:
		c.wait(ctx, m.shard)
	case *deliveryBegun:
		c.beginDelivery(ctx, core.BeginDelivery(*m))
	case *deliveryEnded:
		c.step(ctx, core.EndDelivery(*m))
	case *handled:
		c.step(ctx, core.Handled(*m))
	case *envelope:
		c.onEnvelope(ctx, m)
	case *arrived:
		c.stir = c.stir || m.Data.Delivery == 0 // the shard waits for it to stop
		c.step(ctx, core.Arrived(*m))
	case *rejected:
		c.step(ctx, core.Received{From: m.From, Message: m.Data})
	case *confirmed:
		for _, n := range m.numbers {
			c.step(ctx, core.Received{From: m.from, Message: core.Confirm{
				Shard: m.shard, Number: n}})
		}
	case *survey:
		c.ask(m)
	case *surveyed:
		delete(c.surveys, m.number)
	case *timer.Fired:
		c.fired(ctx, m)
	default:
		c.stir = true
		c.receive(ctx)
	}
}

func (c *control) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *membership.View:
		c.onView(ctx, m)
	case *gate.State:
		c.step(ctx, core.Gate{Open: m.Open})
	case *ended:
		c.running--
		c.step(ctx, core.Ended{Shard: m.shard, Token: m.token})
	case *heard:
		if c.view == nil { // the coordinator here has seen its view first
			c.early = m
			return
		}
		c.hear(ctx, c.self, m.message)
	case *known:
		c.step(ctx, core.Known(*m))
	case *attempted:
		c.onAttempt(ctx, m)
	case *over:
		c.step(ctx, core.Lost{Shard: m.shard, Token: m.token})
	case *freed:
		c.leases.forget(m.Shard, m.Token)
		c.step(ctx, core.Released(*m))
	case *looked:
		c.step(ctx, core.Looked(*m))
	case *leave:
		c.leaving = ctx.Sender()
		c.step(ctx, core.Leave{})
	case *flush:
		c.leaving, c.last = ctx.Sender(), true
		c.step(ctx, core.Finish{})
	case *hurry:
		c.leaving, c.last = ctx.Sender(), true
		c.giveUp(ctx)
	default:
		c.binding.refuse("", stash.Of(ctx).Envelope(), ErrInvalid)
	}
}

// listen subscribes to the events of a member that is up, also after a restart of the actor.
func (c *control) listen(ctx actor.Context) {
	if !c.begun {
		return
	}
	c.binding.members.Subscribe(ctx.Self())
	c.binding.subscribeTable(ctx.Self())
	if c.leases != nil {
		gate.Of(ctx.ActorSystem()).Subscribe(ctx.Self())
	} else {
		c.step(ctx, core.Gate{}) // it hosts nothing, also if the member has the role
	}
	c.tick.Set(tickEvery, nil)
}

// tickEvery is how often the control actor checks whether the stores answer, divides Config.Limit,
// and introduces itself to members that it has not heard.
const tickEvery = time.Second

func (c *control) fired(ctx actor.Context, m *timer.Fired) {
	if !c.tick.Mine(m) {
		c.stir = true
		c.shell.Fired(ctx, m)
		return
	}
	c.tick.Set(tickEvery, nil)
	c.peers.pass(c.shell.Now())
	c.introduce(ctx)
	c.share()
	if now, changed := c.heed(); changed {
		c.step(ctx, now)
	}
}

func (c *control) step(ctx actor.Context, ev core.Event) { c.shell.Step(ctx, ev) }

// wait lets messages wait for a shard, unless this member was removed for good.
func (c *control) wait(ctx actor.Context, shard int) {
	if !c.quit && (c.view == nil || !c.view.Removed) || c.binding.follows() {
		c.step(ctx, core.Waits{Shard: shard})
		return
	}
	for _, b := range c.binding.shards[shard].withdraw() {
		c.binding.refuse(b.ID, b.Value, ErrClosed)
	}
}

func (c *control) onView(ctx actor.Context, v *membership.View) {
	if c.view == nil && c.leases != nil {
		go c.leases.observeFormer()
	}
	c.count(v)
	c.view, c.self = v, member(v.Self)
	c.binding.view.Store(v)
	if v.Removed {
		c.giveUp(ctx)
		return
	}
	c.peers.keep(v, c.shell.Now().Add(c.binding.linger()))
	c.introduce(ctx)
	c.look(ctx)
	if m := c.early; m != nil {
		c.early = nil
		c.hear(ctx, c.self, m.message)
	}
}

// look passes the participating members to the core: those that are expected to host, and those
// that have introduced themselves.
func (c *control) look(ctx actor.Context) {
	v := core.View{Self: c.self}
	admit := &admission{c.view, map[string]core.Member{}}
	for _, m := range c.view.Members {
		if m.Incarnation != 0 && (m.ID == c.view.Self.ID || m.HasRole(c.binding.cfg.Role) ||
			c.peers.heard(m)) {
			v.Members = append(v.Members, member(m))
			if !c.peers.differs(m) {
				admit.members[m.ID] = member(m)
			}
		}
	}
	c.vote()
	if c.quit {
		return
	}
	c.binding.admits.Store(admit)
	c.step(ctx, v)
	maps.DeleteFunc(c.flows, func(m core.Member, _ *lane.Flow) bool {
		return !slices.Contains(v.Members, m)
	})
	c.binding.keepLinks(func(m core.Member) bool { return slices.Contains(v.Members, m) })
}

// giveUp stops everything at once, without waiting.
func (c *control) giveUp(ctx actor.Context) {
	c.quit = true
	c.binding.admits.Store(nil)
	c.abandon()
	c.step(ctx, core.View{Self: c.self, Members: []core.Member{c.self}, Removed: true})
	for n, s := range c.binding.shards {
		if s.waiting() > 0 {
			c.wait(ctx, n)
		}
	}
	if c.leases == nil {
		return
	}
	for _, t := range c.leases.tenures() {
		c.step(ctx, core.Lost{Shard: t.shard, Token: t.token})
	}
}

func (c *control) carryOut(ctx actor.Context, e core.Effect) {
	switch e := e.(type) {
	case core.Tell:
		c.tell(ctx, e)
	case core.Deliver:
		c.deliver(e)
	case core.Acquire:
		c.leases.acquire(e)
	case core.Start:
		c.start(ctx, e)
	case core.Admit:
		c.admit(ctx, e)
	case core.Stop:
		c.stop(ctx, e.Shard, e.Token, core.StopAll{
			StoreFails: c.store.Memory == core.MemoryFails})
	case core.StopNow:
		c.stop(ctx, e.Shard, e.Token, core.StopAllNow{})
	case core.Release:
		c.leases.release(e)
	case core.Conclude:
		conclude(e)
	case core.Open:
		c.direct(ctx, e)
	case core.Shut:
		if c.binding.shards[e.Shard].shutOut() {
			c.wait(ctx, e.Shard)
		}
	case core.Drop:
		c.binding.counts.dropped.Add(1)
		if e.Body.ID != "" {
			c.binding.deadLetter(e.Body.ID, e.Body.Value)
		}
	case core.Orphaned:
		s := c.binding.shards[e.Shard]
		s.mu.Lock() // a sender that has a ticket records it
		defer s.mu.Unlock()
		if c.orphaned == nil {
			c.orphaned = map[core.Tenure]bool{}
		}
		c.orphaned[e.Tenure] = true
	case core.Look:
		c.leases.look(c.region.Epoch())
	}
}

// failed reports an effect that panicked to the core, as the failure that it expects of such an
// effect.
func (c *control) failed(ctx actor.Context, e core.Effect) {
	switch e := e.(type) {
	case core.Acquire:
		c.step(ctx, core.NotHeld{Shard: e.Shard, Attempt: e.Attempt})
	case core.Start:
		c.step(ctx, core.Lost(e))
		c.stop(ctx, e.Shard, e.Token, core.StopAllNow{})
	case core.Stop:
		c.stop(ctx, e.Shard, e.Token, core.StopAllNow{})
	case core.StopNow:
		c.stop(ctx, e.Shard, e.Token, core.StopAllNow{})
	case core.Release:
		// Otherwise the session would renew it for ever.
		if grant := c.leases.grant(e.Shard, e.Token); grant != nil {
			go func() { _, _ = yield(grant) }()
		}
		c.step(ctx, core.Released{Shard: e.Shard, Token: e.Token})
	case core.Deliver:
		c.binding.incoming(e).report(false)
	case core.Conclude:
		if m, ok := e.Body.Value.(*outgoing); ok && m.delivery != nil {
			m.delivery.conclude(conclusion{ErrUnknown, true})
		}
	case core.Look:
		c.step(ctx, core.Looked{})
	}
}

// direct sends the messages of this process to a tenure.
func (c *control) direct(ctx actor.Context, e core.Open) {
	s := c.binding.shards[e.Shard]
	if e.Host == c.self {
		s.enter(e)
	} else if !s.drain(e, c.flow(e.Host)) {
		c.step(ctx, core.Blocked{Shard: e.Shard, Token: e.Token})
	}
}

// flow returns the flow of messages to a member.
func (c *control) flow(to core.Member) *lane.Flow {
	f := c.flows[to]
	if f == nil {
		f = lane.NewFlow(credit)
		c.flows[to] = f
	}
	return f
}

// owing reports whether a member has not confirmed all messages.
func (c *control) owing(m core.Member) bool {
	f := c.flows[m]
	return f != nil && f.Open()
}

func (c *control) deliver(e core.Deliver) {
	e.Body.Value = c.binding.incoming(e)
	c.binding.shards[e.Shard].deliver(e.Token, e.Body)
}

// start lets entities run, unless the tenure has ended.
func (c *control) start(ctx actor.Context, e core.Start) {
	grant, s := c.leases.grant(e.Shard, e.Token), c.binding.shards[e.Shard]
	if grant != nil && grant.Check() == nil {
		supervisor, err := spawnSupervisor(s, e.Token)
		if err == nil {
			c.running++
			s.open(e.Token, grant, supervisor, c.part())
			return
		}
		// tokens are unique
		c.log.Error("shard not started", slog.Int("shard", e.Shard), slog.Any("error", err))
	}
	c.step(ctx, core.Lost(e))
	c.step(ctx, core.Ended(e))
}

// admit decides which messages of other members a shard accepts.
func (c *control) admit(ctx actor.Context, e core.Admit) {
	s := c.binding.shards[e.Shard]
	s.mu.Lock()
	counted, answer := s.in.Admit(e)
	s.mu.Unlock()
	if answer {
		c.step(ctx, counted)
	}
}

// part returns how many entities each shard on this member may run; 0 means any number.
func (c *control) part() int {
	if c.binding.cfg.Limit == 0 {
		return 0
	}
	return max(1, c.binding.cfg.Limit/max(1, c.running))
}

// share sends the shards their part of the limit if it has changed since the last tick.
func (c *control) share() {
	n := c.part()
	if n == c.told {
		return
	}
	c.told = n
	for _, s := range c.binding.shards {
		s.limit(n)
	}
}

func (c *control) stop(ctx actor.Context, shard int, token uint64, ev core.SlotEvent) {
	if !c.binding.shards[shard].stop(token, ev) {
		c.step(ctx, core.Ended{Shard: shard, Token: token})
	}
}

func (c *control) onAttempt(ctx actor.Context, m *attempted) {
	if m.err != nil {
		n := notHeld(m)
		if !n.Taken && !c.quit {
			if unlogged, due := c.attempts.Due(c.binding.clock.Now(), quiet); due {
				c.log.Info("lease of a shard not acquired: it is tried again", // see the session's log
					slog.Int("shard", m.shard), slog.Any("error", m.err),
					slog.Int("unlogged", unlogged))
			}
		}
		c.step(ctx, n)
		return
	}
	c.step(ctx, core.Held{Shard: m.shard, Attempt: m.attempt, Token: c.leases.granted(m)})
}

// settled publishes the new states of the shards, and answers a leave that has completed.
func (c *control) settled(ctx actor.Context) {
	if len(c.orphaned) > 0 {
		c.binding.calls.Lose(func(t core.Tenure) bool { return c.orphaned[t] })
		c.orphaned = nil
	}
	if !c.stir {
		return
	}
	c.stir = false
	c.binding.heard.Store(c.region.Epoch() > 0)
	c.binding.orphan.Store(c.region.Orphan())
	for _, n := range c.region.Changed() {
		phase, token := c.region.Phase(n)
		c.binding.shards[n].publish(c.log, c.region.Home(n).Home.ID, phase, token)
	}
	if ended := c.region.Ended(); !slices.Equal(ended, c.binding.endedRegions()) {
		c.binding.gone.Store(&ended)
	}
	if c.leaving != nil && !c.busy() && (!c.last || c.region.Finished(c.owing)) {
		sender := c.leaving
		c.leaving = nil
		if c.last {
			c.step(ctx, core.Left{})
		}
		contain.Send(ctx.ActorSystem(), sender, &gone{})
	}
}

// busy reports whether a shard is on this member, or messages wait that may still find a host.
func (c *control) busy() bool {
	hopeful := c.hopeful()
	for n, s := range c.binding.shards {
		if phase, _ := c.region.Phase(n); phase != core.Away || hopeful && s.waiting() > 0 {
			return true
		}
	}
	return false
}

// hopeful reports whether waiting messages may still find a host.
func (c *control) hopeful() bool { return !c.quit && c.view != nil && c.region.Hopeful() }

// shutDown gives up everything that is left, without waiting.
func (c *control) shutDown(ctx actor.Context) {
	c.shell.Stop()
	c.binding.admits.Store(nil)
	for _, s := range c.binding.shards {
		s.shutOut() // a sender that has a ticket has passed its message to the link
	}
	c.binding.keepLinks(func(core.Member) bool { return false })
	c.tick.Stop()
	c.peers.drop()
	c.binding.members.Unsubscribe(ctx.Self())
	if c.leases != nil {
		gate.Of(ctx.ActorSystem()).Unsubscribe(ctx.Self())
		c.leases.abandon()
	}
	c.abandon()
	for n, s := range c.binding.shards {
		for _, b := range s.withdraw() {
			c.binding.leave(n, b)
		}
	}
	c.binding.actors.Done()
}

// toCoordinator passes a report to the coordinator if it is on this member.
func (l *binding) toCoordinator(from core.Member, r core.Report) {
	if pid := l.coordinator.Load(); pid != nil {
		contain.Send(l.system, pid, &report{from, r})
	}
}
