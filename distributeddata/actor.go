package distributeddata

import (
	"cmp"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// replica is the actor around the cores: it turns messages into events, and effects into sends,
// timers and responses. In each incarnation of the member it has a new replica id, and is refilled
// before it counts. When Proto.Actor restarts it, it continues with its state; see resume.
type replica struct {
	l        *binding
	volatile *domain
	durable  *domain   // nil without Config.Durable
	domains  []*domain // volatile and, if there is one, durable
	log      *slog.Logger

	mailbox actor.Mailbox
	ctx     actor.Context // of the message being handled
	asker   asker         // of the request being handled
	view    *membership.View
	address map[string]string // of members, by id
	unlike  map[string]bool   // members that list other durable keys, by id
	others  []string          // their addresses, in order
	// unlikeExpiry are the members with another Config.Expiry, by id, and otherExpiry their
	// addresses.
	unlikeExpiry  map[string]bool
	otherExpiry   []string
	notify        *timer.Timer
	commits       *timer.Timer // of the open events
	waiting       []awaiting   // for the durable rows to be loaded
	patience      *timer.Timer // timer for waiting
	unloaded      error        // why the durable rows cannot be used
	subs          *subscriptions
	pending       map[uint64]pending
	expirer       *expirer
	recordUpdater *recordUpdater // nil: Config.Membership is not set
	nextID        uint64
	before        uint64        // nextID before the message being handled
	drains        []func(any)   // respond functions of pending drains
	limit         time.Duration // of the call whose request is being handled
	telling       bool          // a tellOn is in flight
	stopped       bool
	broken        bool // it has panicked repeatedly, and serves no more; see stopServing

	turn      uint64 // changes with each request, and when run has returned
	responded bool   // to the message being handled
	crashes   crashes

	next     operation // the operation that starts next
	measures map[measured][]metric.RecordOption

	strangers map[reflect.Type]bool // types of messages that have been logged
}

// pending is an operation in flight.
type pending struct {
	d     *domain
	key   string
	write bool
	done  func(core.Done, error)
	op    operation
	began time.Time // set for measured operations
}

// lateState carries the cores of an earlier incarnation to the actor.
type lateState struct{ held held }

func newReplica(l *binding) *replica {
	a := &replica{
		l: l, address: map[string]string{}, subs: newSubscriptions(), pending: map[uint64]pending{},
		measures: map[measured][]metric.RecordOption{}, unlike: map[string]bool{},
		unlikeExpiry: map[string]bool{}, strangers: map[reflect.Type]bool{},
		log: l.system.Logger().With(slog.String("replicator", l.cfg.Name)),
	}
	a.expirer = &expirer{a: a}
	a.volatile = newDomain(a, false)
	a.domains = []*domain{a.volatile}
	if l.r.durableKeys != nil {
		a.durable = newDomain(a, true)
		a.domains = append(a.domains, a.durable)
	}
	return a
}

// begun reports whether the actor has started.
func (a *replica) begun() bool { return a.domains[len(a.domains)-1].core != nil }

// Receive implements actor.Actor.
func (a *replica) Receive(ctx actor.Context) {
	returned := false
	defer a.l.front.handled(ctx.Message())
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
	a.asker = asker{pid: ctx.Sender()}
	a.receive(ctx)
	a.handled()
	returned = true
}

func (a *replica) receive(ctx actor.Context) {
	if a.broken {
		a.receiveBroken(ctx)
		return
	}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		if !a.begun() {
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
	case *lateState:
		for i, d := range a.domains {
			d.held = append(d.held, m.held[i])
			d.catchUp()
		}
	case *taken:
		a.onTaken(m)
	case *actor.DeadLetterResponse: // a subscriber has stopped
	case *recorded:
		m.d.step(m.event)
	case *commitOpen: // see handled
	case goOn:
		a.expirer.wake()
	case tellOn:
		a.telling = false
		a.tellAll()
	case *diskAnswer:
		a.onDisk(*m)
	case *resumed:
		a.onResumed(m)
	case *posted:
		if m.take() {
			a.asker, a.limit = asker{call: m}, m.timeout
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
	if a.awaits(m) {
		return
	}
	a.turn++
	to, turn := a.asker, a.turn
	m.run(a, func(res any) {
		a.responded = true
		if a.turn == turn {
			a.settle() // updates that came before are answered before
		}
		a.respond(to, res)
	})
	a.turn++
}

func (a *replica) startUp() {
	for _, d := range a.domains {
		d.shell.Start(a.ctx)
	}
	if a.notify == nil {
		for _, t := range []**timer.Timer{&a.notify, &a.commits, &a.patience} {
			*t = timer.New(a.l.system, a.ctx.Self())
		}
		for _, h := range a.l.r.inheritance(a.l, a.ctx.Self()) {
			for i, d := range a.domains {
				d.held = append(d.held, h[i])
			}
		}
	}
	if m := a.l.cfg.Membership; m != nil && a.recordUpdater == nil {
		a.recordUpdater = newRecordUpdater(m, a.l.cfg.OperationTimeout)
	}
	for _, d := range a.domains {
		d.begin()
	}
	a.publish()
	a.subs.changed(nil, a.l.published.Load())
	a.l.r.loops.rouse()
	a.expirer.start()
	a.l.run(a.ctx.Self())
	a.l.members.Subscribe(a.ctx.Self())
	if a.durable != nil {
		a.openDisk()
	}
	for _, d := range a.domains {
		d.log.Info("replicator started", slog.String("replica", d.core.Replica().String()),
			slog.Int("keys", d.core.Keys().Len()))
		d.catchUp()
	}
}

// member is the name under which quorums count the member.
func (l *binding) member() string { return cmp.Or(l.cfg.Member, l.system.Address()) }

// shutDown stops all timers and subscriptions, and answers everything that is pending.
func (a *replica) shutDown() {
	a.stopped = true
	a.l.members.Unsubscribe(a.ctx.Self())
	for _, d := range a.domains {
		d.shell.Stop()
	}
	a.notify.Stop()
	a.commits.Stop()
	a.patience.Stop()
	a.expirer.stop()
	for _, w := range a.waiting {
		a.refuse(w, a.cutShort(pending{}))
	}
	a.waiting = nil
	if a.recordUpdater != nil {
		a.recordUpdater.end()
	}
	for id, p := range a.pending {
		delete(a.pending, id)
		a.ended(p, core.Done{}, a.cutShort(p))
	}
}

// cutShort returns the error of an operation that the end of the incarnation interrupts.
func (a *replica) cutShort(p pending) error {
	switch {
	case !a.l.r.goesOn():
		return ErrClosed
	case p.write:
		return fmt.Errorf("%w: key %q: this incarnation of the member ended before the level was reached; the update is kept and spreads in the next one",
			ErrUnknown, p.key)
	}
	return errNotTaken
}

// onView passes the new view to the cores.
func (a *replica) onView(v *membership.View) {
	a.view = v
	clear(a.address)
	for _, m := range a.otherMembers() {
		a.address[m.ID] = m.Address
	}
	a.noteOthers()
	a.expirer.view()
	for _, d := range a.domains {
		if len(a.address) == 0 {
			d.convergence.since = time.Time{} // nothing will be pushed
		}
		d.catchUp()
	}
	if v.Removed {
		a.stopDraining()
	}
}

// otherMembers returns the members with a replica, except this one.
func (a *replica) otherMembers() (others []core.Member) {
	for _, m := range a.view.Members {
		if m.ID != a.view.Self.ID && m.HasRole(a.l.cfg.Role) {
			others = append(others, core.Member{ID: m.ID, Address: m.Address})
		}
	}
	return others
}

// onEnvelope handles a message of another replica. A message that cannot be opened is dropped.
func (a *replica) onEnvelope(env *pb.Envelope) {
	if a.view == nil {
		return
	}
	h, manifest, payload, err := wire.Open(env, a.view.Cluster)
	if err != nil {
		a.log.Debug("message dropped", slog.Any("error", err))
		return
	}
	d := a.volatile
	if manifest.Durable() {
		d = a.durable
	}
	if manifest.Durable() || manifest == wire.ReplicatorBeat {
		a.noteList(h)
		if manifest.Durable() && (d == nil || h.Keys != a.l.r.durableKeys.sum()) {
			return
		}
	}
	d.step(core.Receive{
		Member: h.Member, From: causal.Replica(h.From), To: causal.Replica(h.To),
		Manifest: manifest.Plain(), Payload: payload,
	})
}

func (a *replica) onTimer(m *timer.Fired) {
	switch {
	case a.notify.Mine(m):
		a.tellAll()
	case a.commits.Mine(m):
		a.volatile.settle()
	case a.patience.Mine(m):
		a.impatient()
	case a.expirer.timer.Mine(m):
		a.expirer.wake()
	case !a.stopped:
		for _, d := range a.domains {
			if d.shell.Fired(a.ctx, m) {
				return
			}
		}
	}
}

// start starts an operation at a domain. done is called exactly once, now or later.
func (a *replica) start(d *domain, timeout time.Duration, key string, write bool,
	event func(id uint64, deadline time.Time) core.Event, done func(core.Done, error)) {
	if timeout <= 0 {
		timeout = cmp.Or(a.limit, a.l.cfg.OperationTimeout)
	}
	a.nextID++
	op := a.next
	a.next = operation{}
	a.pending[a.nextID] = pending{d: d, key: key, write: write, done: done, op: op,
		began: d.begun(op)}
	d.step(event(a.nextID, d.shell.Now().Add(timeout)))
}

// update starts an update. An update without a waiter may share its event with others like it, so
// that only the net effect of a burst is sent to other members.
func (a *replica) update(d *domain, at Consistency, timeout time.Duration, key string, adapted bool,
	modify func(*history.Txn) error, done func(core.Done, error)) {
	if at == Local && !adapted && !a.asker.waits() {
		a.next = operation{} // no operation is measured: no caller waits
		d.step(core.Update{Modify: modify})
		return
	}
	a.start(d, timeout, key, true, func(id uint64, deadline time.Time) core.Event {
		return core.Update{ID: id, Level: at.level(), Deadline: deadline, Modify: modify,
			More: true}
	}, done)
}

// component returns the name of the replicator for reports of bugs.
func (a *replica) component() string { return "replicator " + a.l.cfg.Name }

// failed continues after an effect that panicked: its caller and the core do not wait for it.
func (a *replica) failed(d *domain, e core.Effect) {
	switch e := e.(type) {
	case core.Done:
		if p, ok := a.pending[e.ID]; ok {
			delete(a.pending, e.ID)
			a.ended(p, core.Done{}, errBroken)
		}
	case core.Changed:
		a.caughtUp()
		a.expirer.start()
		a.tellLater()
	case core.DiskIs:
		d.diskIs(e.DiskState)
	case core.Commit:
		d.step(core.Committed{Number: e.Number, Err: errBroken})
	case core.LoadRecord:
		d.step(core.RecordLoaded{ID: e.ID, Err: errBroken})
	case core.SwapRecord:
		d.step(core.RecordSwapped{ID: e.ID, Err: errBroken})
	}
}

func (a *replica) effect(d *domain, e core.Effect) {
	switch e := e.(type) {
	case core.Send:
		a.sendOut(d, e)
	case core.Done:
		if !d.arrived(e) {
			a.finish(e)
		}
	case core.Commit:
		a.l.r.disk.commit(e)
	case core.DiskIs:
		d.diskIs(e.DiskState)
	case core.Unrecovered:
		d.log.Error("the disk was damaged, and its rows hold additions that no other member had when this one was refilled: they are not shown; concordctl store prints them while the member is stopped",
			slog.Int("entries", len(e.Keys)),
			slog.Any("keys", e.Keys[:min(len(e.Keys), keysNamed)]))
	case core.Changed:
		a.expirer.changed(e.Keys)
		a.changed(e.Keys)
	case core.Diverged:
		d.log.Error("another replica has received the same updates and holds different values: memory or disk is damaged, or there is a bug; the replica that most others contradict takes their values",
			slog.String("member", a.address[e.Member]), slog.Uint64("corrupted", d.core.Stats().Corrupted))
	case core.Mended:
		d.log.Warn("most other replicas contradicted this one: it has taken the values of another")
	case core.LoadRecord, core.SwapRecord:
		a.callStore(d, e)
	case core.Troubled:
		d.troubled(e)
	case core.DuplicateName:
		d.log.Error("another process runs under the name of this member: this one no longer counts in majorities; stop one of them",
			slog.String("name", a.l.member()), slog.String("other", e.By))
	case core.Forgotten:
		d.log.Warn("the others have forgotten this member although it runs; it rejoins as a new member", slog.String("name", a.l.member()))
	case core.Unequal:
		d.log.Warn("a member has a different MinMembers: configure the same at all members",
			slog.String("name", e.Member), slog.Int("theirs", e.Least),
			slog.Int("here", a.l.cfg.MinMembers))
	case core.OtherExpiry:
		a.noteExpiry(e)
	case core.Restored:
		d.log.Error("this process was restored from a snapshot of its memory: another member knows changes of it that it has not made; it goes on as a new replica, and changes made here since the snapshot may be lost, on every member. Restore a member without its memory, or restart its process at once",
			slog.String("was", e.Was.String()), slog.String("is", e.Is.String()),
			slog.Uint64("not-known-elsewhere", e.Alone))
	}
}

func (a *replica) sendOut(d *domain, e core.Send) {
	address, ok := a.address[e.Member]
	if !ok {
		return
	}
	h := wire.Header{Cluster: a.view.Cluster, Member: a.view.Self.ID,
		From: uint64(d.core.Replica()), To: uint64(e.To)}
	if d.durable || e.Manifest == wire.ReplicatorBeat {
		h.Keys = a.l.r.durableKeys.sum()
	}
	if d.durable {
		e.Manifest = e.Manifest.OfDurable()
	}
	a.l.r.traffic.count(e.Manifest, len(e.Payload))
	a.send(actor.NewPID(address, actorName(a.l.cfg.Name)), wire.Seal(h, e.Manifest, e.Payload))
	if e.Manifest.Plain() == wire.ReplicatorPush {
		d.follow()
	}
}

func (a *replica) finish(end core.Done) {
	if end.ID == 0 {
		if !elsewhere(end.Err) {
			a.log.Warn("an update without a waiter was rejected", slog.Any("error", end.Err),
				slog.String("stack", stackOf(end.Err)))
		}
		return
	}
	p, ok := a.pending[end.ID]
	if !ok {
		return
	}
	delete(a.pending, end.ID)
	a.ended(p, end, a.outcome(p, end))
}

// asker is where the response to a request goes: an actor, a call, or neither.
type asker struct {
	pid  *actor.PID
	call *posted
}

// waits reports whether an actor or a call waits for the response.
func (t asker) waits() bool { return t.pid != nil || t.call != nil }

// respond sends a response to the asker; nil, the result of an adapter, is not sent.
func (a *replica) respond(to asker, res any) {
	switch {
	case res == nil:
	case to.call != nil:
		to.call.respond(res)
	case to.pid != nil:
		a.send(to.pid, res)
	}
}

// send sends a message. A receiving process of this member, and the subscribers of the event stream
// if there is none, run on this goroutine.
func (a *replica) send(to *actor.PID, message any) {
	defer a.guard("taking a message")
	a.ctx.Send(to, message)
}
