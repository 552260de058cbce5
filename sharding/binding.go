package sharding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/early"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
	"github.com/concord-go/concord/singleton"
)

// binding is the part of a region that belongs to one actor system. Nothing refers to it after it
// has ended.
type binding struct {
	system    *actor.ActorSystem
	cfg       Config
	session   *coordination.Session // nil: a proxy
	data      *distributeddata.Replicator
	produce   func(Entity) actor.Actor
	blueprint blueprint // in place of produce; nil: none

	members *membership.Service
	counts  *counters // of the region
	clock   timer.Clock
	log     *slog.Logger

	creating contain.Blocking // of entities
	choosing contain.Blocking // by Config.Strategy
	mistakes bugs.Doubling    // lines of the log about it
	refusals bugs.Sparse      // lines of the log about entities that the application did not create
	panics   bugs.Sparse      // and about panics of its code in entities
	overdue  bugs.Sparse      // and about entities that did not stop when they were asked
	recalls  bugs.Sparse      // and about failed calls of the store of remembered entities
	breaker  *breaker         // of that store

	// Lines about messages. A member that leaves in order has a count of its own, at DEBUG.
	refused, leaving, ignored bugs.Doubling

	shards      []*hostedShard
	control     *actor.PID
	coordinator atomic.Pointer[actor.PID] // the instance, while it is here
	host        *singleton.Singleton      // of the coordinator
	allocation  *core.Allocation          // of its last instance here; only newCoordinator uses it
	processes   []*actor.PID
	pid         atomic.Pointer[actor.PID] // of the ingress, for users

	view   atomic.Pointer[membership.View] // of the control actor; nil: none yet
	gone   atomic.Pointer[[]core.Member]   // see endedRegions; nil: none
	admits atomic.Pointer[admission]       // nil: no messages of other members are accepted
	ballot atomic.Pointer[ballot]          // nil: no view yet
	had    atomic.Pointer[map[string]int]  // shards of members, by address, as they left the view
	links  links
	calls  ask.Calls[core.Tenure]

	surveys atomic.Uint64 // number of surveys begun
	changes changes       // of shards, not yet published
	pace    core.Pace     // of starting remembered entities; nil: at once
	room    core.Room     // for messages that wait for entities

	heard  atomic.Bool // a coordinator has been heard
	orphan atomic.Bool // cut off from the coordinator

	started   sync.Once
	unhook    func()            // removes the OnStop hook
	unobserve func() error      // unregisters the metrics
	guardian  actor.PropsOption // restarts actors forever
	running   chan struct{}     // closed when the member is up
	buffers   buffers           // of mailboxes
	warm      warm
	actors    sync.WaitGroup // actors that have not stopped

	closing atomic.Bool   // close has begun
	closed  chan struct{} // closed when it is over
	err     error         // error of close; set before closed is closed
	ended   func(error)   // called before closed is closed
	region  *region
}

// endedRegions returns the members whose regions have ended, as the control actor knows them.
func (l *binding) endedRegions() []core.Member {
	if ended := l.gone.Load(); ended != nil {
		return *ended
	}
	return nil
}

// component returns the name of the region for reports of bugs.
func (l *binding) component() string { return "sharding " + l.cfg.Type }

func (l *binding) leaseName(shard int) string { return l.cfg.LeasePrefix + strconv.Itoa(shard) }

func (l *binding) coordinatorLease() string { return l.cfg.LeasePrefix + "coordinator" }

// begin accepts messages, which wait until the member is up, and registers with the lifecycle of
// the member.
func (l *binding) begin(key string) (err error) {
	l.unhook, err = lifecycle.OnStop(l.system, lifecycle.Sharding, key, l.close)
	if err == nil {
		// Other members may answer until then.
		_, err = lifecycle.OnStop(l.system, lifecycle.Session, key, l.endCalls)
	}
	if err != nil {
		return fmt.Errorf("sharding %q: %w", l.cfg.Type, err)
	}
	defer func() {
		if err != nil {
			l.unhook()
			l.removeProcesses()
		}
	}()
	l.changes.wake, l.room = make(chan struct{}, 1), lane.NewHeld(l.cfg.Buffer)
	if l.cfg.RecoverRate > 0 {
		l.pace = lane.NewPace(l.cfg.RecoverRate)
	}
	room := lane.NewRoom(l.cfg.Buffer, l.cfg.BufferBytes)
	for n := range l.cfg.Shards {
		l.shards = append(l.shards, &hostedShard{binding: l, n: n, out: lane.NewOut(room)})
	}
	l.breaker = newBreaker()
	l.guardian = bugs.Guardian(l.component(), &l.counts.panics)
	c := newControl(l)
	if err := l.addProcesses(); err != nil {
		return err
	}
	if l.session != nil {
		l.host, err = singleton.New(l.system, l.session, l.coordinatorConfig(), l.newCoordinator)
	} else { // others are told that this member does not host the coordinator
		l.host, err = singleton.NewProxy(l.system, l.coordinatorConfig())
	}
	if err != nil {
		return fmt.Errorf("sharding %q: %w: coordinator: %w", l.cfg.Type, ErrInvalid, err)
	}
	props := actor.PropsFromProducer(func() actor.Actor { return c }, early.Mailbox(), l.guardian)
	l.control = actor.NewPID(local, l.cfg.controlName()) // spawning it needs the PID
	l.actors.Add(1)
	if _, err = l.system.Root.SpawnNamed(props, l.cfg.controlName()); err != nil {
		l.actors.Done()
		return fmt.Errorf("sharding %q: %w", l.cfg.Type, err)
	}
	lifecycle.OnStart(l.system, key, l.ready)
	lifecycle.OnCheck(l.system, key, l.check)
	lifecycle.OnHosted(l.system, l.hosted)
	go l.announce()
	return nil
}

// endCalls ends the calls of Ask that no member will answer any more.
func (l *binding) endCalls(context.Context) error {
	l.calls.Close(ErrClosed)
	return nil
}

func (l *binding) coordinatorConfig() singleton.Config {
	return singleton.Config{
		Name: l.cfg.coordinatorName(), Role: l.cfg.Role, MinMembers: l.cfg.MinMembers,
		Settle:    l.cfg.Settle,
		LeaseName: l.coordinatorLease(), Meters: l.cfg.Meters,
	}
}

// up continues the start once the member has an address.
func (l *binding) up(self membership.Member) {
	l.pid.Store(actor.NewPID(self.Address, l.cfg.ingressName()))
	contain.Send(l.system, l.control, &begun{})
	close(l.running)
}

// ready waits until the member is up and its settings agree with those of the others.
func (l *binding) ready(ctx context.Context) error {
	select {
	case <-l.running:
		return l.agree(ctx)
	case <-l.closed:
		return errors.Join(ErrClosed, l.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// send accepts a message of this process for an entity. It returns an error if the message was not
// accepted.
func (l *binding) send(id string, value any, c *call) error {
	select {
	case <-l.closed:
		return ErrClosed
	default:
	}
	n, err := l.cfg.shardOf(id)
	if err != nil {
		return err
	}
	return l.shards[n].send(id, value, c)
}

// pass lets a message of an earlier incarnation wait, before all messages of this one.
func (l *binding) pass(m keptMessage) {
	if err := l.shards[m.shard].wait(m.body); err != nil {
		l.refuse(m.body.ID, m.body.Value, err)
	}
}

// shut stops the acceptance of messages of this process. When it returns, those that were accepted
// are with their entities or the remoting, or wait.
func (l *binding) shut() {
	for _, s := range l.shards {
		s.mu.Lock()
		s.shut = true
		s.mu.Unlock()
	}
}

// refuse counts a message, and sends it to the dead letters. If the message came from Ask, its
// sender gets the reason instead. That a member which leaves in order takes no further messages is
// no fault.
func (l *binding) refuse(id string, value any, why error) {
	l.counts.refused.Add(1)
	level, lines := slog.LevelWarn, &l.refused
	if errors.Is(why, ErrClosed) && l.closing.Load() && !l.follows() {
		level, lines = slog.LevelDebug, &l.leaving
	}
	if n, due := lines.Due(l.clock.Now()); due {
		l.log.Log(context.Background(), level, "message refused", slog.Any("error", why),
			slog.Uint64("refused", n))
	}
	if m, long := value.(*outgoing); long {
		if l.answer(m, why) {
			return
		}
		value = m.value
	}
	l.deadLetter(id, value)
}

// answer sends the caller of Ask the reason why its message was refused, or returns false if the
// message did not come from Ask.
func (l *binding) answer(m *outgoing, why error) bool {
	_, _, sender := actor.UnwrapEnvelope(m.value)
	if m.call == nil || sender == nil {
		return false
	}
	contain.Send(l.system, sender, &refusal{why})
	return true
}

func (l *binding) deadLetter(name string, message any) {
	contain.DeadLetter(l.system, actor.NewPID(l.system.Address(), l.cfg.ingressName()+"/"+name),
		message)
}

// refusal is the answer to Ask for a rejected message.
type refusal struct{ err error }
