package membership

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/asynkron/protoactor-go/extensions"

	"github.com/concord-go/concord/internal/lifecycle"
)

// extensionID is taken once per process: the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// attaching guards our slot of every system's registry, which is not synchronised.
var attaching sync.Mutex

// Service is the membership of one actor system. Its methods may be called from any goroutine.
type Service struct {
	system   *actor.ActorSystem
	counters counters
	view     atomic.Pointer[View]
	division atomic.Pointer[divided] // nil before the first report
	removed  chan struct{}           // closed when this life was ended
	ready    chan struct{}           // closed when this member has its stamp
	stopping chan struct{}           // closed by Stop
	stopped  chan struct{}           // closed when nothing of the service runs any more

	mu struct {
		sync.Mutex
		events   *eventstream.Subscription
		actor    *actor.PID // nil until this member is listed
		stop     bool
		ready    bool
		pending  []func(Member)
		draining bool
		to       []*actor.PID // subscribers
		tuning   Tuning
		arbiter  bool
	}
}

// ExtensionID implements extensions.Extension.
func (*Service) ExtensionID() extensions.ExtensionID { return extensionID }

// Attach returns the membership service of system, and makes it at the first call. Call it before
// the member starts: earlier topology events are not seen.
func Attach(system *actor.ActorSystem) *Service {
	attaching.Lock()
	defer attaching.Unlock()
	if s, ok := system.Extensions.Get(extensionID).(*Service); ok {
		return s
	}
	s := &Service{
		system:   system,
		removed:  make(chan struct{}),
		ready:    make(chan struct{}),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	system.Extensions.Register(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.events = system.EventStream.Subscribe(s.onEvent)
	// The error says that the member is stopping already.
	_, _ = lifecycle.OnStop(system, lifecycle.Sharding, "membership", func(context.Context) error {
		s.leave()
		return nil
	})
	return s
}

// Lookup returns the service of system if there is one.
func Lookup(system *actor.ActorSystem) (*Service, bool) {
	attaching.Lock()
	defer attaching.Unlock()
	s, ok := system.Extensions.Get(extensionID).(*Service)
	return s, ok
}

// View returns the latest view, nil before this member is listed.
func (s *Service) View() *View { return s.view.Load() }

// Removed is closed when this life of the member has ended other than by Stop. Cause says why.
// Another life of the same process, with a new member id, can join again.
func (s *Service) Removed() <-chan struct{} { return s.removed }

// Cause returns why the member was removed: an error that matches ErrRemoved; nil while it is in.
func (s *Service) Cause() error {
	if v := s.view.Load(); v != nil {
		return v.Cause
	}
	return nil
}

// Tune adapts the protocol that heals a split. Call it before this member is listed: later calls do
// nothing.
func (s *Service) Tune(t Tuning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.tuning = t
}

// SetArbiter says whether this member knows that the arbiter lease is held by a member of its
// fragment. Then members of other fragments give way to it first. At first it is false.
func (s *Service) SetArbiter(here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.arbiter == here || s.mu.stop {
		return
	}
	s.mu.arbiter = here
	if s.mu.actor != nil {
		s.system.Root.Send(s.mu.actor, arbiter{here})
	}
}

// Lost returns the addresses, sorted, of members that were listed once, are not any more, and did
// not leave in order. They are asked for a day whether they are back. The slice is the caller's.
func (s *Service) Lost() []string {
	if d := s.division.Load(); d != nil {
		return slices.Clone(d.lost)
	}
	return nil
}

// Split returns the running members of this cluster with which this one disagrees about who is in
// it for longer than its patience, by id, and since when there has been one. It is empty unless the
// cluster is split. The slice is the caller's.
func (s *Service) Split() (others []Member, since time.Time) {
	if d := s.division.Load(); d != nil {
		return slices.Clone(d.others), d.since
	}
	return nil, time.Time{}
}

// leave is called when the member begins to stop in order: from now on it promises nobody to stay.
func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.actor != nil && !s.mu.stop {
		s.system.Root.Send(s.mu.actor, leave{})
	}
}

func (s *Service) divided(d divided) { s.division.Store(&d) }

// Stopped is closed when the service has been stopped and its actor is gone.
func (s *Service) Stopped() <-chan struct{} { return s.stopped }

// Stats returns the counters.
func (s *Service) Stats() Stats { return s.counters.stats() }

// Ready waits until this member is listed and has its stamp, or ctx ends.
func (s *Service) Ready(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	default:
	}
	select {
	case <-s.ready:
		return nil
	case <-s.removed:
		return s.Cause()
	case <-s.stopping:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WhenUp calls f once, when this member first sees itself listed; never if that does not happen.
// Functions run one at a time in order of registration: in the caller's goroutine if the member is
// up and no other function is running, else in the goroutine that runs them, which is the
// membership actor's at first. So f must not block, nor wait for a view. A panic in f is logged and
// ends only f.
func (s *Service) WhenUp(f func(self Member)) {
	s.mu.Lock()
	s.mu.pending = append(s.mu.pending, f)
	s.mu.Unlock()
	s.drain()
}

func (s *Service) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view.Load()
	if v == nil || s.mu.draining {
		return
	}
	s.mu.draining = true
	for len(s.mu.pending) > 0 && !s.mu.stop {
		f := s.mu.pending[0]
		s.mu.pending = s.mu.pending[1:]
		s.mu.Unlock()
		s.call(f, v.Self)
		s.mu.Lock()
	}
	s.mu.draining = false
}

func (s *Service) call(f func(Member), self Member) {
	defer func() {
		if r := recover(); r != nil {
			s.system.Logger().Error("component did not start", slog.Any("panic", r))
		}
	}()
	f(self)
}

// Subscribe sends *View to pid: the latest now, if there is one, and each later one, in order. The
// subscriber must be local, and unsubscribe before it stops. Subscribing twice sends the latest
// again.
func (s *Service) Subscribe(pid *actor.PID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.mu.to, pid.Equal) {
		s.mu.to = append(s.mu.to, pid)
	}
	if v := s.view.Load(); v != nil {
		s.system.Root.Send(pid, v)
	}
}

// Unsubscribe ends Subscribe. A view may still be in the mailbox of pid.
func (s *Service) Unsubscribe(pid *actor.PID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.to = slices.DeleteFunc(s.mu.to, pid.Equal)
}

// Stop ends the service: no more views and no more hellos. The last view stays. It does not wait;
// see Stopped. Later calls do nothing.
func (s *Service) Stop() {
	s.mu.Lock()
	if s.mu.stop {
		s.mu.Unlock()
		return
	}
	s.mu.stop = true
	close(s.stopping)
	events, pid := s.mu.events, s.mu.actor
	s.mu.to, s.mu.pending = nil, nil
	s.mu.Unlock()

	s.system.EventStream.Unsubscribe(events)
	if pid == nil {
		close(s.stopped)
		return
	}
	s.system.Root.Stop(pid)
}

func (s *Service) actorStopped() { close(s.stopped) }

// publish stores v before it is sent, under the lock, so that a subscriber never gets an older view
// after a newer one.
func (s *Service) publish(v *View) {
	s.mu.Lock()
	if s.mu.stop {
		s.mu.Unlock()
		return
	}
	s.view.Store(v)
	for _, pid := range s.mu.to {
		s.system.Root.Send(pid, v)
	}
	if v.Self.Stamp != 0 && !s.mu.ready {
		s.mu.ready = true
		close(s.ready)
	}
	if v.Removed {
		close(s.removed) // the core publishes no other view after this one
	}
	s.mu.Unlock()
	s.drain()
}
