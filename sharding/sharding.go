package sharding

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Region is this member's part in a type of entities whose messages are of type Msg. It finds every
// entity, and hosts shards if it was created by New. Its methods may be called from any goroutine.
// Use New, NewProxy, NewDaemons or NewDaemonsProxy to create one: calls with an error result of
// another one return ErrInvalid.
//
// Under node.Run a process may have several incarnations: a member that was split off from its
// cluster leaves it and joins again as a new member. The Region stays valid: in the next
// incarnation, New returns a Region with the same handle, bound to the new actor system.
type Region[Msg proto.Message] struct{ *region }

// region is the part of a Region that does not depend on the type of messages.
type region struct {
	typ      string
	shards   int  // the same in every incarnation
	numbered bool // as constant: worker mode, where an entity's id is its shard's number
	present  *lifecycle.Present[binding]

	counts counters
	kept   kept

	origin     uint64        // random: with a number, it identifies a delivery
	deliveries atomic.Uint64 // number of the last delivery
	delivering atomic.Int64  // calls of Deliver in progress
}

// New prepares this member to host entities of a type and to send to them. Call it with the same
// Config on every member with Config.Role before the member starts.
//
// produce creates an entity when there is a message for it. It runs in its own goroutine and may
// take its time; messages for the entity wait meanwhile. The entity is stopped as soon as the lease
// of its shard is lost; see the package comment for the consequences. If produce panics or returns
// nil, it is called again after a pause that grows to 10s; after eight failures in a row, the
// waiting messages become dead letters. The first failure of a member is logged, and then at most
// one in 10s, with the number of those before it that were not; nil as a warning, a panic as an
// error. So produce may return nil while it lacks what an entity needs. Stats.Failed counts all.
//
// The session must outlive the region: close it after the member has stopped. The replicator
// carries the table of shards.
//
// The error matches ErrInvalid, also if the member already has a region of this type, or reports
// that the member is stopping.
func New[Msg proto.Message](system *actor.ActorSystem, session *coordination.Session,
	replicator *distributeddata.Replicator, cfg Config, produce func(Entity) actor.Actor,
) (*Region[Msg], error) {
	return begin[Msg](&binding{system: system, cfg: cfg, session: session, data: replicator,
		produce: produce}, checkHost(session, cfg, produce == nil)...)
}

// checkHost returns the problems of the arguments for a member that hosts.
func checkHost(session *coordination.Session, cfg Config, noProduce bool) (errs []error) {
	if session == nil {
		errs = append(errs, fmt.Errorf("%w: no session: Node.Session is nil unless RunConfig.Store is set", ErrInvalid))
	} else if n := cfg.withDefaults().Shards; n > maxUnshared && !session.Shared() &&
		!cfg.RenewEachLease {
		errs = append(errs, fmt.Errorf(
			"%w: Shards is %d, it must be at most %d with a lease store that keeps no session records, unless RenewEachLease is set", ErrInvalid, n, maxUnshared))
	}
	if noProduce {
		errs = append(errs, fmt.Errorf("%w: no produce function", ErrInvalid))
	}
	return errs
}

// NewProxy prepares this member to send to entities without hosting any, whatever its roles.
func NewProxy[Msg proto.Message](system *actor.ActorSystem, replicator *distributeddata.Replicator,
	cfg Config) (*Region[Msg], error) {
	return begin[Msg](&binding{system: system, cfg: cfg, data: replicator})
}

func begin[Msg proto.Message](l *binding, errs ...error) (*Region[Msg], error) {
	if l.system == nil {
		errs = append(errs, fmt.Errorf("%w: no actor system", ErrInvalid))
	}
	if l.data == nil {
		errs = append(errs, fmt.Errorf("%w: no replicator", ErrInvalid))
	}
	if err := errors.Join(append(errs, l.cfg.validate())...); err != nil {
		return nil, err
	}
	l.cfg = l.cfg.withDefaults()
	r, err := bind(l)
	if err != nil {
		return nil, err
	}
	return &Region[Msg]{r}, nil
}

var errUnmade = fmt.Errorf("%w: no function of this package has made the region", ErrInvalid)

// made returns ErrInvalid unless New, NewProxy, NewDaemons or NewDaemonsProxy has made the region.
func (r *region) made() error {
	if r == nil {
		return errUnmade
	}
	return nil
}

// local is an address that Proto.Actor resolves on the sending system.
const local = "nonhost"

// PID returns the PID that accepts an *Envelope for any entity of the type. It is never nil, and
// sending to it is always safe; any other message becomes a dead letter. It is meant for actors of
// this system that expect replies: ctx.Request(region.PID(), &sharding.Envelope{…}).
//
// A PID belongs to one incarnation of the member. Call PID for each send rather than keeping its
// result.
func (r *region) PID() *actor.PID {
	if l := r.present.Load(); l != nil {
		return l.pid.Load()
	}
	return actor.NewPID(local, Config{Type: r.typ}.ingressName())
}

// Envelope addresses a message to an entity. It never leaves the member.
type Envelope struct {
	ID      string
	Message proto.Message

	call *call // nil: not by Ask
}

// Stats holds counters since the first New, over all incarnations. It contains no user data.
type Stats struct {
	Refused uint64 // messages whose sender got an error, and dead letters of accepted ones
	Dropped uint64 // messages of other regions: of another tenure (dead letters), or duplicates
	Ignored uint64 // protocol messages that could not be used: damaged, or of an unknown kind

	Started    uint64 // incarnations of entities, including failed attempts
	Passivated uint64 // entities asked to stop while their shard stayed
	Failed     uint64 // incarnations that could not be created, or panicked too often

	Redelivered uint64 // messages of Deliver passed to entities that may have handled them before

	Panics uint64 // panics of this library; see the log
}

type counters struct {
	refused, dropped, ignored, started, passivated, failed,
	redelivered, panics atomic.Uint64
}

// Stats returns the counters.
func (r *region) Stats() Stats {
	if r.made() != nil {
		return Stats{}
	}
	c := &r.counts
	return Stats{
		Refused: c.refused.Load(), Dropped: c.dropped.Load(), Ignored: c.ignored.Load(),
		Started: c.started.Load(), Passivated: c.passivated.Load(), Failed: c.failed.Load(),
		Redelivered: c.redelivered.Load(), Panics: c.panics.Load(),
	}
}
