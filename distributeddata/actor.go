package distributeddata

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// replica is the actor around a core: it turns messages into events, and effects into sends, timers and
// responses. In each life of the member it is another incarnation with a new replica id, refilled before it counts.
// When Proto.Actor restarts it, it goes on as it is, see resume.
type replica struct {
	l    *life
	core *core.Core
	log  *slog.Logger

	ctx     actor.Context // of the message being handled
	view    *membership.View
	address map[string]string // of members, by id
	shell   *shell.Shell[core.Event, core.Effect]
	notify  *timer.Timer
	subs    *subscriptions
	pending map[uint64]pending
	clerk   *clerk       // nil: the membership is no record
	held    []*core.Core // by former lives, until the actor has started
	nextID  uint64
	before  uint64        // nextID before the message being handled
	drains  []func(any)   // answers to those under way
	limit   time.Duration // of the call whose request is being handled
	telling bool          // a tellOn is on its way
	stopped bool
	gathers bool // the last step may have left an event open, whose changes are not published yet

	responded bool // to the message being handled
	crashes   crashes

	strangers map[reflect.Type]bool // types of messages that have been logged
}

// pending is an operation under way.
type pending struct {
	key   string
	write bool
	done  func(core.Done, error)
}

// former brings what a former life held.
type former struct{ held *core.Core }

func newReplica(l *life) *replica {
	a := &replica{
		l: l, address: map[string]string{}, subs: newSubscriptions(), pending: map[uint64]pending{}, strangers: map[reflect.Type]bool{},
		log: l.system.Logger().With(slog.String("replicator", l.cfg.Name)),
	}
	a.shell = shell.New(shell.Config[core.Event, core.Effect]{
		Core: stepping{a}, Wake: core.Wake{}, CarryOut: func(_ actor.Context, e core.Effect) { a.effect(e) },
		Stepped: a.publish, // before anybody is answered, so that everybody reads what they wrote
	})
	return a
}

// stepping is the present core.
type stepping struct{ a *replica }

func (s stepping) Step(now time.Time, ev core.Event) []core.Effect {
	u, update := ev.(core.Update)
	s.a.gathers = update && u.ID == 0
	return s.a.core.Step(now, ev)
}

func (s stepping) NextWake() time.Time { return s.a.core.NextWake() }

// Receive implements actor.Actor.
func (a *replica) Receive(ctx actor.Context) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			a.crashed(p)
			panic(p) // restarts the actor
		}
		if !returned {
			a.interrupted()
		}
	}()
	a.ctx, a.before, a.responded, a.limit = ctx, a.nextID, false, 0
	a.receive(ctx)
	returned = true
}

func (a *replica) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		if a.core == nil {
			a.startUp()
		} else {
			a.resume()
		}
	case *actor.Stopping:
		a.stop()
	case *actor.Terminated:
		a.subs.removeAll(m.Who)
	case *membership.View:
		a.onView(m)
	case *pb.Envelope:
		a.onEnvelope(m)
	case *timer.Fired:
		a.onTimer(m)
	case *former:
		a.step(core.Inherit{Old: m.held})
	case *taken:
		a.onTaken(m)
	case *actor.DeadLetterResponse: // a subscriber has stopped
	case *recorded:
		a.step(m.event)
	case tellOn:
		a.telling = false
		a.tellAll()
	case *posted:
		if m.take() {
			a.limit = m.timeout
			a.carryOut(m.request)
		}
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		if req, ok := asRequest(m); ok {
			a.carryOut(req)
		} else {
			a.stranger(m)
		}
	}
}

func (a *replica) carryOut(m request) {
	sender := a.ctx.Sender()
	m.run(a, func(res any) {
		a.responded = true
		a.respond(sender, res)
	})
}

func (a *replica) startUp() {
	a.shell.Start(a.ctx)
	if a.notify == nil {
		a.notify = timer.New(a.l.system, a.ctx.Self())
		a.held = a.l.r.inheritance(a.l, a.ctx.Self())
	}
	if m := a.l.cfg.Membership; m != nil && a.clerk == nil {
		a.clerk = newClerk(m, a.l.cfg.OperationTimeout)
	}
	a.core = begin(a.coreConfig(), a.held)
	a.subs.changed(nil, a.core.Keys(), a.core.Seen())
	a.publish()
	a.l.run(a.ctx.Self())
	a.l.members.Subscribe(a.ctx.Self())
	a.log.Info("replicator started", slog.String("replica", a.core.Replica().String()), slog.Int("keys", a.core.Keys().Len()))
	late := a.held[min(1, len(a.held)):]
	a.held = nil
	for _, c := range late {
		a.step(core.Inherit{Old: c})
	}
}

func (a *replica) coreConfig() core.Config {
	cfg := a.l.cfg
	return core.Config{
		Member:     a.l.member(),
		NewReplica: func() causal.Replica { return causal.Replica(rand.Uint64() | 1) },
		Recorded:   cfg.Membership != nil,
		MinMembers: cfg.MinMembers, ForgetAfter: max(cfg.ForgetAfter, 0), BeatInterval: cfg.HeartbeatInterval, BeatPeers: 3,
		Grace: cfg.HeartbeatInterval / 5, Patience: 2 * cfg.HeartbeatInterval,
		WindowCount: 1024, WindowBytes: 4 << 20, LogBytes: cfg.LogBytes, PushBytes: 4 << 20, PartBytes: 64 << 10, CompareKeys: 64,
		Reach: a.l.r.reach,
	}
}

// begin returns the core of a life, which goes on with what the former one held.
func begin(cfg core.Config, held []*core.Core) *core.Core {
	if len(held) == 0 {
		return core.New(cfg)
	}
	return held[0].Again(cfg)
}

// member is the name under which quorums count the member.
func (l *life) member() string { return cmp.Or(l.cfg.Member, l.system.Address()) }

// shutDown ends what is under way.
func (a *replica) shutDown() {
	a.stopped = true
	a.l.members.Unsubscribe(a.ctx.Self())
	a.shell.Stop()
	a.notify.Stop()
	if a.clerk != nil {
		a.clerk.end()
	}
	for id, p := range a.pending {
		delete(a.pending, id)
		p.done(core.Done{}, a.cutShort(p))
	}
}

// cutShort is the error of an operation that the end of the life cuts short.
func (a *replica) cutShort(p pending) error {
	switch {
	case !a.l.r.goesOn():
		return ErrClosed
	case p.write:
		return fmt.Errorf("%w: key %q: the life of this member ended before the level was reached; the update is kept, and spreads in the next one",
			ErrUnknown, p.key)
	}
	return errNotTaken
}

// closeOnce closes c unless it is closed. Only the actor closes running and ready.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// onView tells the core of the other replicas.
func (a *replica) onView(v *membership.View) {
	a.view = v
	clear(a.address)
	var others []core.Member
	for _, m := range v.Members {
		if m.ID == v.Self.ID || !m.HasRole(a.l.cfg.Role) {
			continue
		}
		a.address[m.ID] = m.Address
		others = append(others, core.Member{ID: m.ID, Address: m.Address})
	}
	a.step(core.View{Others: others})
	if v.Removed {
		a.stopDraining()
	}
}

// onEnvelope takes a message of another replica. What cannot be opened is dropped.
func (a *replica) onEnvelope(env *pb.Envelope) {
	if a.view == nil {
		return
	}
	h, manifest, payload, err := wire.Open(env, a.view.Cluster)
	if err != nil {
		a.log.Debug("message dropped", slog.Any("error", err))
		return
	}
	a.step(core.Receive{Member: h.Member, From: causal.Replica(h.From), To: causal.Replica(h.To), Manifest: manifest, Payload: payload})
}

func (a *replica) onTimer(m *timer.Fired) {
	if a.notify.Mine(m) {
		a.tellAll()
	} else if !a.stopped {
		a.shell.Fired(a.ctx, m)
	}
}

// start begins an operation; done is called once, now or later.
func (a *replica) start(timeout time.Duration, key string, write bool, event func(id uint64, deadline time.Time) core.Event, done func(core.Done, error)) {
	if timeout <= 0 {
		timeout = cmp.Or(a.limit, a.l.cfg.OperationTimeout)
	}
	a.nextID++
	a.pending[a.nextID] = pending{key, write, done}
	a.step(event(a.nextID, a.shell.Now().Add(timeout)))
}

// update begins an update. One that nobody waits for may share its event with others like it, so that what others are
// told is only what a burst of them amounts to.
func (a *replica) update(at Consistency, timeout time.Duration, key string, adapted bool, modify func(*core.Txn) error, done func(core.Done, error)) {
	if at == Local && !adapted && a.ctx.Sender() == nil {
		a.step(core.Update{Modify: modify})
		return
	}
	a.start(timeout, key, true, func(id uint64, deadline time.Time) core.Event {
		return core.Update{ID: id, Level: at.level(), Deadline: deadline, Modify: modify}
	}, done)
}

// step hands an event to the core and carries out the effects.
func (a *replica) step(ev core.Event) {
	if !a.stopped {
		a.shell.Step(a.ctx, ev)
	}
}

// carryOn carries out the effects that are left, and more, also when a function of the application has ended the
// goroutine in one of them.
func (a *replica) carryOn(more ...core.Effect) {
	defer func() {
		if a.shell.Left() {
			a.carryOn()
		}
	}()
	a.shell.CarryOn(a.ctx, more...)
}

func (a *replica) effect(e core.Effect) {
	defer a.guard("answering")
	switch e := e.(type) {
	case core.Send:
		a.sendOut(e)
	case core.Done:
		a.finish(e)
	case core.Changed:
		a.changed(e.Keys)
	case core.Diverged:
		a.log.Error("another replica has seen the same and holds something else; the one that is outvoted will mend itself",
			slog.String("member", e.Member), slog.Uint64("rotten", a.core.Stats().Rotten))
	case core.Mended:
		a.log.Warn("this replica was outvoted and has taken the state of another")
	case core.LoadRecord, core.SwapRecord:
		a.callStore(e)
	case core.Troubled:
		a.troubled(e)
	case core.Usurped:
		a.log.Error("another process runs under the name of this member: this one counts in no majority any more; stop one of them",
			slog.String("name", a.l.member()), slog.String("other", e.By))
	case core.Forgotten:
		a.log.Warn("the others have forgotten this member although it runs; it enters anew", slog.String("name", a.l.member()))
	case core.Unequal:
		a.log.Warn("a member has another MinMembers than this one",
			slog.String("name", e.Member), slog.Int("theirs", e.Least), slog.Int("here", a.l.cfg.MinMembers))
	case core.Reborn:
		a.log.Error("own changes were unknown here, going on as a new replica", slog.String("was", e.Was.String()), slog.String("is", e.Is.String()))
	}
}

func (a *replica) publish() {
	old := a.l.published.Load()
	c := a.core
	stats := c.Stats()
	if old != nil && old.replica == c.Replica() && old.ready == c.Ready() && old.keys.Same(c.Keys()) && old.seen.Equal(c.Seen()) &&
		old.view == a.view && old.stats == stats && old.roll == c.Rollcall() && slices.Equal(old.lags, c.Lags()) && slices.Equal(old.silent, c.Silent()) {
		return
	}
	a.l.published.Store(&published{
		number: states.Add(1), replica: c.Replica(), keys: c.Keys(), seen: c.Seen(), ready: c.Ready(), stats: stats,
		view: a.view, members: len(a.address) + 1, lags: c.Lags(), silent: c.Silent(), roll: c.Rollcall(),
	})
	a.l.r.news.tell()
	if c.Ready() {
		closeOnce(a.l.ready)
	}
}

// state returns what a key holds, and what has been seen of it.
func (a *replica) state(key string) (causal.Store, causal.Vector) {
	h, _ := a.core.Keys().Get(key)
	return h.Store, a.core.Seen()
}

func (a *replica) sendOut(e core.Send) {
	address, ok := a.address[e.Member]
	if !ok {
		return
	}
	h := wire.Header{Cluster: a.view.Cluster, Member: a.view.Self.ID, From: uint64(a.core.Replica()), To: uint64(e.To)}
	a.l.r.traffic.count(e.Manifest, len(e.Payload))
	a.ctx.Send(actor.NewPID(address, actorName(a.l.cfg.Name)), wire.Seal(h, e.Manifest, e.Payload))
}

func (a *replica) finish(d core.Done) {
	if d.ID == 0 {
		a.log.Warn("an update that nobody waits for was refused", slog.Any("error", d.Err), slog.String("stack", stackOf(d.Err)))
		return
	}
	p, ok := a.pending[d.ID]
	if !ok {
		return
	}
	delete(a.pending, d.ID)
	p.done(d, a.outcome(p.key, d))
}

// respond sends a response to whoever asked; nil, from an adapter, is no message.
func (a *replica) respond(to *actor.PID, res any) {
	if to != nil && res != nil {
		a.send(to, res)
	}
}

// send sends a message to an actor of this member. Whatever process that is runs on this goroutine, and so do
// the subscribers of the event stream, if it has stopped.
func (a *replica) send(to *actor.PID, message any) {
	defer a.guard("taking a message")
	a.ctx.Send(to, message)
}
