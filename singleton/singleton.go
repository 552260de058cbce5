package singleton

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Singleton is this process's handle of the singleton. It always finds the host, and after New this
// process may be the host. Its methods may be called from any goroutine. Use New or NewProxy to
// create one: Ask and Close of another one return ErrInvalid.
//
// Under node.Run a process may have several incarnations: a member that was split off from its
// cluster leaves it and joins again as a new member. The Singleton stays the same: New in the next
// incarnation returns it again, bound to the new actor system.
type Singleton struct {
	name    string
	present *lifecycle.Present[binding]
	place   locations
	counts  counters
}

// New prepares this member for hosting the singleton, and for sending to it. Call it with the same
// Config on every member, before the member starts. A member hosts only if it has the role.
//
// produce makes the instance for one tenure of the lease. The host calls it for each tenure, and
// again after an instance has panicked or stopped by itself. An instance is stopped as soon as the
// lease is lost; see the package comment for what that means. produce is called from an actor, so
// it must not block. The session must outlive the singleton: close it after the member has stopped.
//
// For the next incarnation of a member, call New again; it returns the same *Singleton. session,
// cfg and produce are those of the new incarnation; Name must stay the same.
//
// The error is ErrInvalid, also if the member already has a singleton of this name, or it reports
// that the member is stopping.
func New(system *actor.ActorSystem, session *coordination.Session, cfg Config,
	produce func(coordination.Tenure) actor.Actor) (*Singleton, error) {
	var errs []error
	if system == nil {
		errs = append(errs, errNoSystem)
	}
	if session == nil {
		errs = append(errs, fmt.Errorf("%w: no session: Node.Session is nil unless RunConfig.Store is set", ErrInvalid))
	}
	if produce == nil {
		errs = append(errs, fmt.Errorf("%w: produce is nil", ErrInvalid))
	}
	if err := errors.Join(append(errs, cfg.validate())...); err != nil {
		return nil, err
	}
	return begin(&binding{system: system, cfg: cfg.withDefaults(), session: session,
		produce: produce})
}

// NewProxy prepares this member for sending to the singleton, without hosting it, whatever its
// roles. Like New, it returns the same *Singleton in each incarnation of the member.
func NewProxy(system *actor.ActorSystem, cfg Config) (*Singleton, error) {
	err := cfg.validate()
	if system == nil {
		err = errors.Join(errNoSystem, err)
	}
	if err != nil {
		return nil, err
	}
	return begin(&binding{system: system, cfg: cfg.withDefaults()})
}

// local is the address that Proto.Actor resolves on any sending system.
const local = "nonhost"

// PID returns the address for messages to the singleton, wherever the instance is. It is never nil,
// and sending to it is always safe. Before this member is up, the proxy behind it keeps messages,
// up to Config.Buffer, in order; after Close, and while the member rejoins, messages go to the dead
// letters. Replies come directly from the instance.
//
// Messages of one sender arrive in order, each at most once; see the package comment.
//
// A PID belongs to one incarnation of the member. A PID from before the member is up has no address
// yet, so only actors of this system can use it. Call PID for each send rather than keep its
// result.
func (s *Singleton) PID() *actor.PID {
	if l := s.present.Load(); l != nil {
		return l.pid.Load()
	}
	return actor.NewPID(local, Config{Name: s.name}.proxyName())
}

// Stats counts events since the first New, over all incarnations. It contains no user data.
type Stats struct {
	Started  uint64 // instances that this member has made
	Refused  uint64 // messages sent to the dead letters here, for any reason
	PassedOn uint64 // messages passed on to another member's manager
	// StateLost counts states that instances left here, see Warm, and that did not reach the next
	// instance.
	StateLost uint64
	Ignored   uint64 // messages of the protocol that were damaged or of an unknown kind
	Panics    uint64 // panics of this library; see the log
}

type counters struct{ started, refused, passedOn, ignored, stateLost, panics atomic.Uint64 }

// Stats returns the counters.
func (s *Singleton) Stats() Stats {
	c := &s.counts
	return Stats{
		Started: c.started.Load(),
		Refused: c.refused.Load(), PassedOn: c.passedOn.Load(), Ignored: c.ignored.Load(),
		StateLost: c.stateLost.Load(), Panics: c.panics.Load(),
	}
}
