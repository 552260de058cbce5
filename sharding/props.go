package sharding

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/ctxext"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/sharding/internal/props"
)

// blueprint is the function given to newFromProps.
type blueprint = func(Entity) (props *actor.Props, init func(actor.Context), err error)

// newFromProps is like New for entities that are spawned with Proto.Actor's props: middleware,
// context decorators and the supervision of children work as elsewhere, and Context.Actor returns
// the actor that the props produce. Package sharding/grains uses it.
//
// blueprint returns the props of an entity, and a function that is called with the context of the
// entity before its first message; it may be nil. Return the same *actor.Props for many entities,
// because each shard keeps a copy of it. blueprint and the producer of the props run in the actor
// of the shard, so they must not block. A panic of either, or an error of blueprint, is a failure
// like one of produce, see New.
//
// The mailbox and the dispatcher of the props are replaced. A spawn function and a guardian of the
// props are not used.
//
// Messages that are sent to the PID of such an entity, see Ref.activate, count as messages for
// Config.Idle and Config.Limit.
func newFromProps[Msg proto.Message](system *actor.ActorSystem, session *coordination.Session,
	replicator *distributeddata.Replicator, cfg Config,
	blueprint func(Entity) (*actor.Props, func(actor.Context), error)) (*Region[Msg], error) {
	return begin[Msg](&binding{system: system, cfg: cfg, session: session, data: replicator,
		blueprint: blueprint}, checkHost(session, cfg, blueprint == nil)...)
}

// incarnationID is allocated once per process, since each context has a slot for every id.
var incarnationID = ctxext.NextContextExtensionID()

// ExtensionID implements ctxext.ContextExtension.
func (*incarnation) ExtensionID() ctxext.ContextExtensionID { return incarnationID }

// incarnationOf returns the incarnation that handles the message of ctx, or nil.
func incarnationOf(ctx actor.Context) *incarnation {
	if a, ok := ctx.Actor().(*entityActor); ok {
		return a.incarnation
	}
	return incarnationIn(ctx)
}

// incarnationIn returns the incarnation of an entity that was spawned from props, or nil.
func incarnationIn(ctx actor.ExtensionContext) (in *incarnation) {
	defer func() { _ = recover() }() // Proto.Actor panics if the context has no slot for the id
	in, _ = ctx.Get(incarnationID).(*incarnation)
	return in
}

// init sets what package sharding/grains uses.
func init() {
	props.Hosted.NewRegion = func(system *actor.ActorSystem, session, replicator, cfg,
		blueprint any) (any, error) {
		return newFromProps[proto.Message](system, session.(*coordination.Session),
			replicator.(*distributeddata.Replicator), cfg.(Config),
			blueprint.(func(Entity) (*actor.Props, func(actor.Context), error)))
	}
	props.Hosted.Activate = func(ctx context.Context, ref any) (*actor.PID, error) {
		return ref.(Ref[proto.Message]).activate(ctx)
	}
}

var errNoProps = errors.New("the function given to NewRegion returned no props")

// spawnProps spawns an entity from its props. It runs code of the application, which may panic.
func (v *shardSupervisor) spawnProps(ctx actor.Context, in *incarnation) (why any, stack string) {
	defer func() {
		if p := recover(); p != nil {
			why, stack = p, string(debug.Stack())
			system := ctx.ActorSystem()
			system.ProcessRegistry.Remove(actor.NewPID(system.Address(), in.path(ctx.Self())))
		}
		v.init = nil
	}()
	props, init, err := v.shard.binding.blueprint(in.entity())
	if err == nil && props == nil {
		err = errNoProps
	}
	if err != nil {
		return err, ""
	}
	v.init = init
	_, err = actor.DefaultSpawner(ctx.ActorSystem(), in.path(ctx.Self()), v.derive(props), ctx)
	if err != nil {
		return err, ""
	}
	return nil, ""
}

// derive returns props that work in this shard, a copy for each that the function of newFromProps
// returns.
func (v *shardSupervisor) derive(props *actor.Props) *actor.Props {
	if p := v.derived[props]; p != nil {
		return p
	}
	if v.derived == nil || len(v.derived) >= maxDerived {
		v.derived = map[*actor.Props]*actor.Props{}
	}
	p := props.Clone(
		actor.WithMailbox(func() actor.Mailbox { return &v.next.box }),
		actor.WithReceiverMiddleware(attend),
		actor.WithOnInit(func(ctx actor.Context) {
			ctx.Set(v.next)
			if v.init != nil {
				v.init(ctx)
			}
		}))
	v.derived[props] = p
	return p
}

// maxDerived bounds the props that a supervisor remembers, for a function that returns others each
// time.
const maxDerived = 1000

// attend is the innermost middleware of an entity that was spawned from props: it does for it what
// entityActor does for others.
func attend(next actor.ReceiverFunc) actor.ReceiverFunc {
	return func(ctx actor.ReceiverContext, m *actor.MessageEnvelope) {
		in := incarnationIn(ctx)
		if in == nil {
			return // never: OnInit has set it
		}
		switch m.Message.(type) {
		case *actor.Started:
			in.box.entered = !in.box.over()
			if !in.box.entered {
				return
			}
			in.shard.binding.counts.started.Add(1)
			next(ctx, m)
		case *actor.Stopping, *actor.Restarting:
			in.guarded(m.Message, func() { next(ctx, m) })
		case *actor.Stopped:
			in.guarded(m.Message, func() { next(ctx, m) })
			in.shard.terminated(in)
		default:
			if in.box.entered {
				next(ctx, m)
			}
		}
	}
}
