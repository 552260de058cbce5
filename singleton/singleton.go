package singleton

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

// Singleton is this member's part: it always finds the host, and after New it may be the host. Its
// methods may be called from any goroutine.
type Singleton struct {
	system  *actor.ActorSystem
	cfg     Config
	session *coordination.Session // nil: only a proxy
	produce func(coordination.Tenure) actor.Actor
	members *membership.Service

	started sync.Once
	proxy   atomic.Pointer[actor.PID] // nil before the member is up
	manager *actor.PID                // before running is closed; nil for a proxy
	place   atomic.Pointer[located]
	counts  counters
	unhook  func()         // takes the OnStop hook back
	running chan struct{}  // closed when the actors run
	ended   sync.WaitGroup // the actors

	closing atomic.Bool   // Close has begun
	closed  chan struct{} // closed when Close is over
	err     error         // of Close, or why the actors did not start; before closed is closed
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
// whichever member has it, and when an instance has panicked or stopped by itself. It is never called,
// and an instance is stopped as soon as the lease is lost; see the package comment for what that
// means. It is called from an actor, so it must not block. The session must outlive the singleton: close
// it after the member has stopped.
//
// The error is ErrInvalid, or says that the member is stopping.
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
	return prepare(&Singleton{system: system, cfg: cfg.withDefaults(), session: session, produce: produce})
}

// NewProxy prepares this member for sending to the singleton, without hosting it. Config.Role is
// required, and this member must not have it: of those that do, each is expected to host.
func NewProxy(system *actor.ActorSystem, cfg Config) (*Singleton, error) {
	err := cfg.Validate()
	if cfg.Role == "" {
		err = errors.Join(err, fmt.Errorf("%w: Role is not set, so this member would have to host", ErrInvalid))
	}
	if err != nil {
		return nil, err
	}
	return prepare(&Singleton{system: system, cfg: cfg.withDefaults()})
}

func prepare(s *Singleton) (*Singleton, error) {
	s.members = membership.Attach(s.system)
	s.running, s.closed = make(chan struct{}), make(chan struct{})
	name := "singleton " + s.cfg.Name
	unhook, err := lifecycle.OnStop(s.system, lifecycle.Singleton, name, s.Close)
	if err != nil {
		return nil, fmt.Errorf("singleton: %w", err)
	}
	s.unhook = unhook
	lifecycle.OnStart(s.system, name, s.up)
	s.members.WhenUp(func(membership.Member) { s.started.Do(s.spawn) })
	return s, nil
}

func (s *Singleton) spawn() {
	guardian := actor.WithGuardian(actor.NewExponentialBackoffStrategy(10*time.Second, 100*time.Millisecond))
	if s.session != nil {
		m := newManager(s)
		pid, err := s.system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return m }, guardian), s.cfg.managerName())
		if err != nil {
			s.fail(err)
			return
		}
		s.manager = pid
		s.ended.Add(1)
	}
	p := newProxy(s)
	pid, err := s.system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return p }, guardian), s.cfg.proxyName())
	if err != nil {
		if s.manager != nil {
			s.system.Root.Stop(s.manager)
		}
		s.fail(err)
		return
	}
	s.ended.Add(1)
	s.proxy.Store(pid)
	close(s.running)
}

func (s *Singleton) fail(err error) {
	s.system.Logger().Error("singleton not started", slog.String("singleton", s.cfg.Name), slog.Any("error", err))
	if s.closing.CompareAndSwap(false, true) {
		s.err = fmt.Errorf("singleton %q: %w", s.cfg.Name, err)
		close(s.closed)
	}
}

// up waits until the actors run.
func (s *Singleton) up(ctx context.Context) error {
	select {
	case <-s.running:
		return nil
	case <-s.closed:
		return errors.Join(ErrClosed, s.err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// PID takes messages for the singleton, wherever it is, from when this member is up until Close or
// the member's end. It is nil before the member is up. Replies come straight from the instance.
//
// Messages of one sender arrive in order, each at most once; see the package comment.
func (s *Singleton) PID() *actor.PID { return s.proxy.Load() }

// Ask sends msg to the singleton and waits for the first reply. It sends once: who wants to try again
// decides that knowing what the instance does with it. It waits for a member to host, too; bound it
// with ctx. Do not call it from an actor: it blocks.
//
// Errors: ErrUndelivered, ErrBufferFull, ErrNotProtobuf and ErrClosed say that the message was certainly
// not handled. ErrUnknown says that ctx ended first. A reply of the instance that is an error value
// is a reply.
func (s *Singleton) Ask(ctx context.Context, msg any) (any, error) {
	if msg == nil {
		return nil, fmt.Errorf("%w: no message", ErrInvalid)
	}
	pid := s.PID()
	if pid == nil || s.over() {
		return nil, ErrClosed
	}
	res, err := ask.Request(ctx, s.system, pid, &asked{msg})
	if refused, ok := res.(*refusal); ok {
		return nil, refused.err
	}
	switch {
	case err == nil:
		return res, nil
	case !errors.Is(err, ask.ErrDeadLetter):
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	case s.over():
		return nil, ErrClosed
	}
	return nil, ErrUndelivered
}

func (s *Singleton) over() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Where tells where the instance is, as far as this member knows, for people and dashboards: it may have
// moved. false: it is not known where it is now; the place is then the last one known, if any.
func (s *Singleton) Where() (Place, bool) {
	if l := s.place.Load(); l != nil {
		return l.Place, l.now
	}
	return Place{}, false
}

// Stats counts since New. It holds no user data.
type Stats struct {
	Refused  uint64 // messages sent to the dead letters here, for whatever reason
	PassedOn uint64 // messages passed on to another member's manager
}

type counters struct{ refused, passedOn atomic.Uint64 }

// Stats returns the counters.
func (s *Singleton) Stats() Stats {
	return Stats{Refused: s.counts.refused.Load(), PassedOn: s.counts.passedOn.Load()}
}
