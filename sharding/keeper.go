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

// keeper is the actor of a shard in one tenure: the parent of its entities. It counts them itself:
// an entry in Proto.Actor's set of children would be a tenth of an idle entity.
type keeper struct {
	place *place
	timer *timer.Timer
	props *actor.Props // shared by all: own ones would be a third of an idle entity
	next  *cell        // being spawned
	live  int          // entities that have not terminated
	over  bool         // no entity follows: the keeper stops when the last has terminated

	// Of grains only.
	derived map[*actor.Props]*actor.Props // by those that its function has returned
	init    func(actor.Context)           // of next; nil: none
}

// Messages of a place to its keeper, besides *cell, which is to be spawned.
type (
	rearm  time.Time // when the keeper must wake its place
	finish struct{}  // the slot is empty
)

// spawnKeeper starts a keeper and returns its PID.
func spawnKeeper(p *place, token uint64) (*actor.PID, error) {
	props := actor.PropsFromProducer(func() actor.Actor { return &keeper{place: p} },
		p.binding.guardian)
	name := p.binding.cfg.controlName() + "-" + strconv.Itoa(p.n) + "-" +
		strconv.FormatUint(token, 10)
	pid, err := p.binding.system.Root.SpawnNamed(props, name)
	if err == nil {
		p.binding.actors.Add(1)
	}
	return pid, err
}

// Receive implements actor.Actor.
func (k *keeper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		k.timer = timer.New(ctx.ActorSystem(), ctx.Self())
	case *cell:
		k.spawn(ctx, m)
	case rearm:
		k.timer.SetAt(time.Time(m), nil)
	case *timer.Fired:
		if k.timer.Mine(m) {
			k.place.pass()
		}
	case finish:
		k.over = true
		k.leave(ctx)
	case *actor.Terminated:
		k.place.ensure(m.Who, ctx.Self())
		k.live--
		k.leave(ctx)
	case *actor.Stopping:
		k.timer.Stop()
	case *actor.Stopped:
		k.place.binding.actors.Done()
	}
}

func (k *keeper) spawn(ctx actor.Context, c *cell) {
	k.next = c
	defer func() { k.next = nil }()
	if k.place.binding.blueprint != nil {
		if why, stack := k.spawnProps(ctx, c); why != nil {
			k.place.unmade(c.id, why, stack)
			k.unspawned(c)
			return
		}
		k.live++
		return
	}
	if k.props == nil {
		k.props = actor.PropsFromProducer(func() actor.Actor {
			return &incarnation{place: k.place}
		},
			actor.WithMailbox(func() actor.Mailbox { return &k.next.box }))
	}
	_, err := actor.DefaultSpawner(ctx.ActorSystem(), c.path(ctx.Self()), k.props, ctx)
	if err == nil {
		k.live++
		return
	}
	k.place.log().Error("entity not spawned", slog.String("entity", c.id), // names are unique
		slog.Any("error", err))
	k.unspawned(c)
}

// unspawned ends an incarnation that could not be spawned.
func (k *keeper) unspawned(c *cell) {
	c.box.fail()
	k.place.terminated(c)
}

// HandleFailure implements actor.SupervisorStrategy. An entity that fails while it starts is
// stopped, so that the next incarnation waits for the back-off; any other is restarted as actors
// are by default.
func (k *keeper) HandleFailure(system *actor.ActorSystem, sup actor.Supervisor, who *actor.PID,
	stats *actor.RestartStatistics, reason, message any) {
	switch message.(type) {
	case *actor.Started, *actor.Restart:
		sup.StopChildren(who)
	default:
		actor.DefaultSupervisorStrategy().HandleFailure(system, sup, who, stats, reason, message)
	}
}

// leave stops the keeper if it is over.
func (k *keeper) leave(ctx actor.Context) {
	if k.over && k.live <= 0 { // below 0 after a restart of the keeper
		ctx.Stop(ctx.Self())
	}
}

// incarnation is the actor of an entity; it wraps the user's actor. A restart creates another
// incarnation for the same cell.
type incarnation struct {
	place *place
	cell  *cell       // nil before the first message after a restart
	user  actor.Actor // nil: not created
}

// Receive implements actor.Actor.
func (in *incarnation) Receive(ctx actor.Context) {
	if in.cell == nil {
		if in.cell = in.place.cellOf(ctx.Self(), ctx.Parent()); in.cell == nil {
			return // it has terminated
		}
	}
	switch ctx.Message().(type) {
	case *actor.Started:
		if in.begin(ctx) {
			in.user.Receive(ctx)
		}
	case *actor.Stopping, *actor.Restarting:
		in.guarded(ctx)
	case *actor.Stopped:
		in.guarded(ctx)
		in.cell.place.terminated(in.cell)
	default:
		if in.user != nil {
			in.user.Receive(ctx)
		}
	}
}

// begin creates the user's actor, and reports whether that succeeded.
func (in *incarnation) begin(ctx actor.Context) bool {
	c := in.cell
	if c.box.over() {
		return false
	}
	c.place.binding.counts.started.Add(1)
	user, why, stack := in.produce()
	if why != nil {
		c.place.unmade(c.id, why, stack)
		c.box.fail()
		c.box.halt()
		return false
	}
	in.user = user
	return true
}

// produce calls the user's function; if that panics, the panic is the reason. If the function ends
// the goroutine, the mailbox treats that as a failure.
func (in *incarnation) produce() (user actor.Actor, why any, stack string) {
	defer func() {
		if p := recover(); p != nil {
			user, why, stack = nil, p, string(debug.Stack())
		}
	}()
	if user = in.cell.place.binding.produce(in.cell.entity()); user == nil {
		why = "the function given to New returned nil"
	}
	return user, why, stack
}

// guarded passes the user's actor a message about the end of the entity, if the actor was created.
func (in *incarnation) guarded(ctx actor.Context) {
	in.cell.box.entered = in.user != nil
	in.cell.guarded(ctx.Message(), func() { in.user.Receive(ctx) })
}

// guarded passes the user's actor a message about the end of the entity, if that has begun.
// Proto.Actor must complete the stop whatever the user's code does, so the code runs in another
// goroutine, which it may end.
func (c *cell) guarded(message any, receive func()) {
	if !c.box.entered {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				c.place.log().Error("entity panicked while stopping",
					slog.String("entity", c.id),
					slog.String("message", fmt.Sprintf("%T", message)), slog.Any("reason", p),
					slog.String("stack", string(debug.Stack())))
			}
		}()
		receive()
	}()
	<-done
}
