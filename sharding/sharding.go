package sharding

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Region is this member's part in a type of entities whose messages are of type Msg: it finds every entity, and hosts
// shards if it was made by New. Its methods may be called from any goroutine.
//
// Under node.Run a process may have several lives: a member that was split off from its cluster leaves it and joins again
// as a new member. The Region stays the same: New in the next life returns one of the same handle, bound to the new actor
// system.
type Region[Msg any] struct{ *region }

// region is what regions of any message have in common.
type region struct {
	typ      string
	shards   int  // the same in every life
	numbered bool // the id of an entity is the number of its shard; so is this
	present  *lifecycle.Present[life]

	extractor atomic.Pointer[extractor] // nil: none
	counts    counters
}

// New prepares this member for hosting entities of a type, and for sending to them. Call it with the same Config on every
// member with Config.Role, before the member starts.
//
// produce makes an entity, when there is a message for it, in a goroutine of its own: it may take its time, during which
// messages for this entity wait. The entity is stopped as soon as the lease of its shard is lost; see the package comment
// for what that means. If produce panics or returns nil, that is logged, and it is called again after a pause that grows
// to 10s; after eight failures in a row the messages that wait go to the dead letters.
//
// The session must outlive the region: close it after the member has stopped. The replicator carries the table of shards.
//
// The error is ErrInvalid, also if the member has a region of this type already, or says that the member is stopping.
func New[Msg any](system *actor.ActorSystem, session *coordination.Session, replicator *distributeddata.Replicator,
	cfg Config, produce func(Entity) actor.Actor,
) (*Region[Msg], error) {
	return begin[Msg](&life{system: system, cfg: cfg, session: session, data: replicator, produce: produce}, checkHost(session, cfg, produce)...)
}

// checkHost returns what is wrong with a member that is to host.
func checkHost(session *coordination.Session, cfg Config, produce func(Entity) actor.Actor) (errs []error) {
	if session == nil {
		errs = append(errs, fmt.Errorf("%w: no session", ErrInvalid))
	} else if n := cfg.withDefaults().Shards; n > maxUnshared && !session.Shared() && !cfg.RenewEachLease {
		errs = append(errs, fmt.Errorf("%w: Shards is %d, it must be at most %d with a lease store that keeps no session records, unless RenewEachLease is set",
			ErrInvalid, n, maxUnshared))
	}
	if produce == nil {
		errs = append(errs, fmt.Errorf("%w: nothing to produce entities", ErrInvalid))
	}
	return errs
}

// NewProxy prepares this member for sending to entities, without hosting any. Config.Role is required, and this member
// must not have it: of those that do, each is expected to host.
func NewProxy[Msg any](system *actor.ActorSystem, replicator *distributeddata.Replicator, cfg Config) (*Region[Msg], error) {
	return begin[Msg](&life{system: system, cfg: cfg, data: replicator}, checkProxy(cfg))
}

func checkProxy(cfg Config) error {
	if cfg.Role == "" {
		return fmt.Errorf("%w: Role is not set, so this member would have to host", ErrInvalid)
	}
	return nil
}

func begin[Msg any](l *life, errs ...error) (*Region[Msg], error) {
	if l.system == nil {
		errs = append(errs, fmt.Errorf("%w: no actor system", ErrInvalid))
	}
	if l.data == nil {
		errs = append(errs, fmt.Errorf("%w: no replicator", ErrInvalid))
	}
	if err := errors.Join(append(errs, l.cfg.Validate())...); err != nil {
		return nil, err
	}
	l.cfg = l.cfg.withDefaults()
	if l.cfg.Extractor != nil {
		l.extractor = &extractor{extract: l.cfg.Extractor}
	}
	r, err := bind(l)
	if err != nil {
		return nil, err
	}
	return &Region[Msg]{r}, nil
}

// local is the address that Proto.Actor resolves on whatever system sends.
const local = "nonhost"

// PID takes an *Envelope for any entity of the type, and with Config.Extractor any message for which that names one. It is
// never nil, and sending to it is always safe; anything else goes to the dead letters. It is for actors of this system that are to be answered: ctx.Request(region.PID(),
// &sharding.Envelope{…}).
//
// A PID is of one life of the member. Call PID for each send rather than keep one.
func (r *region) PID() *actor.PID {
	if l := r.present.Load(); l != nil {
		return l.pid.Load()
	}
	return actor.NewPID(local, Config{Type: r.typ}.doorName())
}

// Envelope addresses a message to an entity. It does not leave the member.
type Envelope struct {
	ID      string
	Message any

	byAsk bool
}

// Stats counts since the first New, over all lives. It holds no user data.
type Stats struct {
	Refused uint64 // messages given back or sent to the dead letters here, for whatever reason
	Dropped uint64 // messages of other regions that were not taken: of another tenure, or repeated
	Ignored uint64 // messages of the protocol that could not be used: damaged, or of an unknown kind

	Started    uint64 // incarnations of entities, tries that failed included
	Passivated uint64 // entities that were asked to end while their shard stayed
	Failed     uint64 // incarnations that could not be made, or panicked too often
}

type counters struct{ refused, dropped, ignored, started, passivated, failed atomic.Uint64 }

// Stats returns the counters.
func (r *region) Stats() Stats {
	c := &r.counts
	return Stats{
		Refused: c.refused.Load(), Dropped: c.dropped.Load(), Ignored: c.ignored.Load(),
		Started: c.started.Load(), Passivated: c.passivated.Load(), Failed: c.failed.Load(),
	}
}
