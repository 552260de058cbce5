package singleton

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
)

// Singleton is this process's part: it always finds the host, and after New it may be the host. Its
// methods may be called from any goroutine.
//
// Under node.Run a process may have several lives: a member that was split off from its cluster leaves
// it and joins again as a new member. The Singleton stays the same: New in the next life returns it
// again, bound to the new actor system.
type Singleton struct {
	name    string
	present atomic.Pointer[life] // nil between two lives, and after Close
	place   atomic.Pointer[located]
	counts  counters

	mu struct {
		sync.Mutex
		turn  chan struct{} // closed, and made anew, when present or final changes
		final bool          // no other life is to be waited for
		err   error         // of the last Close
	}
}

// Place is where the instance is.
type Place struct {
	Address string             // of the member's actor system
	Token   coordination.Token // of the tenure
}

type located struct {
	Place
	now bool // and still there
}

// New prepares this member for hosting the singleton, and for sending to it. Call it with the same
// Config on every member, before the member starts. It hosts only if it has the role.
//
// produce makes the instance for one tenure of the lease. It is called again for each tenure, at
// whichever member has it, and when an instance has panicked or stopped by itself. An instance is
// stopped as soon as the lease is lost; see the package comment for what that means. produce is called
// from an actor, so it must not block. The session must outlive the singleton: close it after the
// member has stopped.
//
// Called again for the next life of the member, see Singleton, it returns the same *Singleton. session,
// cfg and produce are those of the new life; Name stays.
//
// The error is ErrInvalid, also if the member has a singleton of this name already, or says that the
// member is stopping.
func New(system *actor.ActorSystem, session *coordination.Session, cfg Config, produce func(coordination.Tenure) actor.Actor) (*Singleton, error) {
	var errs []error
	if session == nil {
		errs = append(errs, fmt.Errorf("%w: no session", ErrInvalid))
	}
	if produce == nil {
		errs = append(errs, fmt.Errorf("%w: nothing to produce the instance", ErrInvalid))
	}
	if err := errors.Join(append(errs, cfg.Validate())...); err != nil {
		return nil, err
	}
	return begin(&life{system: system, cfg: cfg.withDefaults(), session: session, produce: produce})
}

// NewProxy prepares this member for sending to the singleton, without hosting it. Config.Role is
// required, and this member must not have it: of those that do, each is expected to host. Like New, it
// returns the same *Singleton in each life of the member.
func NewProxy(system *actor.ActorSystem, cfg Config) (*Singleton, error) {
	err := cfg.Validate()
	if cfg.Role == "" {
		err = errors.Join(err, fmt.Errorf("%w: Role is not set, so this member would have to host", ErrInvalid))
	}
	if err != nil {
		return nil, err
	}
	return begin(&life{system: system, cfg: cfg.withDefaults()})
}

// local is the address that Proto.Actor resolves on whatever system sends.
const local = "nonhost"

// PID takes messages for the singleton, wherever it is. It is never nil, and sending to it is always
// safe. Before this member is up it keeps messages, up to Config.Buffer, in order; after Close, and
// between two lives, it leads to the dead letters. Replies come straight from the instance.
//
// Messages of one sender arrive in order, each at most once; see the package comment.
//
// A PID is of one life of the member, and one from before the member is up has no address yet, so that
// only actors of this system can use it. Call PID for each send rather than keep one.
func (s *Singleton) PID() *actor.PID {
	if l := s.present.Load(); l != nil {
		return l.pid.Load()
	}
	return actor.NewPID(local, Config{Name: s.name}.proxyName())
}

// Where tells where the instance is, as far as this member knows, for people and dashboards: it may have
// moved. false: it is not known where it is now; the place is then the last one known, if any.
func (s *Singleton) Where() (Place, bool) {
	if l := s.place.Load(); l != nil {
		return l.Place, l.now
	}
	return Place{}, false
}

// Stats counts since the first New, over all lives. It holds no user data.
type Stats struct {
	Refused  uint64 // messages sent to the dead letters here, for whatever reason
	PassedOn uint64 // messages passed on to another member's manager
	Ignored  uint64 // messages of the protocol that could not be used: damaged, or of an unknown kind
}

type counters struct{ refused, passedOn, ignored atomic.Uint64 }

// Stats returns the counters.
func (s *Singleton) Stats() Stats {
	return Stats{Refused: s.counts.refused.Load(), PassedOn: s.counts.passedOn.Load(), Ignored: s.counts.ignored.Load()}
}
