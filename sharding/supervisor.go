package sharding

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/timer"
)

// shardSupervisor is the actor of a shard in one tenure: the parent of its entities. It counts them
// itself: an entry in Proto.Actor's set of children would be a tenth of an idle entity.
type shardSupervisor struct {
	shard *hostedShard
	timer *timer.Timer
	props *actor.Props // shared by all: own ones would be a third of an idle entity
	next  *incarnation // being spawned
	live  int          // entities that have not terminated
	over  bool         // no entity follows: the supervisor stops when the last has terminated

	// Of grains only.
	derived map[*actor.Props]*actor.Props // by those that its function has returned
	init    func(actor.Context)           // of next; nil: none
}

// Messages of a hostedShard to its supervisor, besides *incarnation, which is to be spawned.
type (
	rearm  time.Time // when the supervisor must wake its shard
	finish struct{}  // the slot is empty
)

// spawnSupervisor starts a supervisor and returns its PID.
func spawnSupervisor(s *hostedShard, token uint64) (*actor.PID, error) {
	props := actor.PropsFromProducer(func() actor.Actor { return &shardSupervisor{shard: s} },
		s.binding.guardian)
	name := s.binding.cfg.controlName() + "-" + strconv.Itoa(s.n) + "-" +
		strconv.FormatUint(token, 10)
	pid, err := s.binding.system.Root.SpawnNamed(props, name)
	if err == nil {
		s.binding.actors.Add(1)
	}
	return pid, err
}

// Receive implements actor.Actor.
func (v *shardSupervisor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		v.timer = timer.New(ctx.ActorSystem(), ctx.Self())
	case *incarnation:
		v.spawn(ctx, m)
	case rearm:
		v.timer.SetAt(time.Time(m), nil)
	case *timer.Fired:
		if v.timer.Mine(m) {
			v.shard.pass()
		}
	case finish:
		v.over = true
		v.leave(ctx)
	case *actor.Terminated:
		v.shard.ensure(m.Who, ctx.Self())
		v.live--
		v.leave(ctx)
	case *actor.Stopping:
		v.timer.Stop()
	case *actor.Stopped:
		v.shard.binding.actors.Done()
	}
}

func (v *shardSupervisor) spawn(ctx actor.Context, in *incarnation) {
	v.next = in
	defer func() { v.next = nil }()
	if v.shard.binding.blueprint != nil {
		if why, stack := v.spawnProps(ctx, in); why != nil {
			v.shard.unmade(in.id, why, stack)
			v.unspawned(in)
			return
		}
		v.live++
		return
	}
	if v.props == nil {
		v.props = actor.PropsFromProducer(func() actor.Actor {
			return &entityActor{shard: v.shard}
		},
			actor.WithMailbox(func() actor.Mailbox { return &v.next.box }))
	}
	_, err := actor.DefaultSpawner(ctx.ActorSystem(), in.path(ctx.Self()), v.props, ctx)
	if err == nil {
		v.live++
		return
	}
	v.shard.log().Error("entity not spawned", slog.String("entity", in.id), // names are unique
		slog.Any("error", err))
	v.unspawned(in)
}

// unspawned ends an incarnation that could not be spawned.
func (v *shardSupervisor) unspawned(in *incarnation) {
	in.box.fail()
	v.shard.terminated(in)
}

// HandleFailure implements actor.SupervisorStrategy. An entity that fails while it starts is
// stopped, so that the next incarnation waits for the back-off; any other is restarted as actors
// are by default.
func (v *shardSupervisor) HandleFailure(system *actor.ActorSystem, sup actor.Supervisor,
	who *actor.PID, stats *actor.RestartStatistics, reason, message any) {
	switch message.(type) {
	case *actor.Started, *actor.Restart:
		sup.StopChildren(who)
	default:
		actor.DefaultSupervisorStrategy().HandleFailure(system, sup, who, stats, reason, message)
	}
}

// leave stops the supervisor if it is over.
func (v *shardSupervisor) leave(ctx actor.Context) {
	if v.over && v.live <= 0 { // below 0 after a restart of the supervisor
		ctx.Stop(ctx.Self())
	}
}

// entityActor is the actor of an incarnation; it wraps the user's actor. A restart creates another
// entityActor for the same incarnation.
type entityActor struct {
	shard       *hostedShard
	incarnation *incarnation // nil before the first message after a restart
	user        actor.Actor  // nil: not created
}

// Receive implements actor.Actor.
func (a *entityActor) Receive(ctx actor.Context) {
	if a.incarnation == nil {
		if a.incarnation = a.shard.incarnationOf(ctx.Self(), ctx.Parent()); a.incarnation == nil {
			return // it has terminated
		}
	}
	switch ctx.Message().(type) {
	case *actor.Started:
		if a.begin(ctx) {
			a.user.Receive(ctx)
		}
	case *actor.Stopping, *actor.Restarting:
		a.guarded(ctx)
	case *actor.Stopped:
		a.guarded(ctx)
		a.incarnation.shard.terminated(a.incarnation)
	default:
		if a.user != nil {
			a.user.Receive(ctx)
		}
	}
}

// begin creates the user's actor, and reports whether that succeeded.
func (a *entityActor) begin(ctx actor.Context) bool {
	in := a.incarnation
	if in.box.over() {
		return false
	}
	in.shard.binding.counts.started.Add(1)
	user, why, stack := a.produce()
	if why != nil {
		in.shard.unmade(in.id, why, stack)
		in.box.fail()
		in.box.stopNow()
		return false
	}
	if in.box.over() {
		return false // the lease was lost meanwhile
	}
	a.user = user
	return true
}

// produce calls the user's function; if that panics, the panic is the reason. If the function ends
// the goroutine, the mailbox treats that as a failure.
func (a *entityActor) produce() (user actor.Actor, why any, stack string) {
	defer func() {
		if p := recover(); p != nil {
			user, why, stack = nil, p, string(debug.Stack())
		}
	}()
	in := a.incarnation
	log := func() *slog.Logger { return in.shard.log().With(slog.String("entity", in.id)) }
	defer in.shard.binding.creating.Begin(log, "creating an entity",
		"messages for the entity wait")()
	if user = in.shard.binding.produce(in.entity()); user == nil {
		why = "the function given to New returned nil"
	}
	return user, why, stack
}

// guarded passes the user's actor a message about the end of the entity, if the actor was created.
func (a *entityActor) guarded(ctx actor.Context) {
	a.incarnation.box.entered = a.user != nil
	a.incarnation.guarded(ctx.Message(), func() { a.user.Receive(ctx) })
}

// guarded passes the user's actor a message about the end of the entity, if that has begun.
// Proto.Actor must complete the stop whatever the user's code does, so the code runs in another
// goroutine, which it may end.
func (in *incarnation) guarded(message any, receive func()) {
	if !in.box.entered {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				in.shard.log().Error("entity panicked while stopping",
					slog.String("entity", in.id),
					slog.String("message", fmt.Sprintf("%T", message)), slog.Any("reason", p),
					slog.String("stack", string(debug.Stack())))
			}
		}()
		receive()
	}()
	<-done
}
