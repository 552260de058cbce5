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

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/lifecycle"
)

// extensionID is allocated once per process, since the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// attaching guards our slot in the registry of every system, which is not synchronised.
var attaching sync.Mutex

// Service is the membership of one actor system. It is safe for concurrent use.
type Service struct {
	system   *actor.ActorSystem
	counters counters
	view     atomic.Pointer[View]
	division atomic.Pointer[divided] // nil before the first report
	removed  chan struct{}           // closed when this incarnation has ended
	ready    chan struct{}           // closed when this member has its stamp
	stopping chan struct{}           // closed by Stop
	stopped  chan struct{}           // closed when nothing of the service runs any longer

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
		seen     map[string]string // addresses of the members that were listed, by id
		replaced []string          // not yet returned by Replaced
	}
}

// maxSeen bounds the addresses of members that are remembered.
const maxSeen = 4096

// ExtensionID implements extensions.Extension.
func (*Service) ExtensionID() extensions.ExtensionID { return extensionID }

// Attach returns the membership service of system; the first call creates it. Call it before the
// member starts, since the service does not see earlier topology events.
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
	// OnStop fails only if the member is already stopping.
	_, _ = lifecycle.OnStop(system, lifecycle.Sharding, "membership", func(context.Context) error {
		s.leave()
		return nil
	})
	return s
}

// Lookup returns the service of system, if there is one.
func Lookup(system *actor.ActorSystem) (*Service, bool) {
	attaching.Lock()
	defer attaching.Unlock()
	s, ok := system.Extensions.Get(extensionID).(*Service)
	return s, ok
}

// View returns the latest view, or nil before this member is listed.
func (s *Service) View() *View { return s.view.Load() }

// Removed returns a channel that is closed when this incarnation of the member has ended other than
// by Stop. Cause returns the reason. Another one, with a new member id, can rejoin.
func (s *Service) Removed() <-chan struct{} { return s.removed }

// Cause returns why the member was removed, as an error that wraps ErrRemoved, or nil if it was
// not.
func (s *Service) Cause() error {
	if v := s.view.Load(); v != nil {
		return v.Cause
	}
	return nil
}

// Tune adapts the protocol that heals a split. Call it before this member is listed; later calls do
// nothing.
func (s *Service) Tune(t Tuning) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.tuning = t
}

// SetArbiter sets whether this member knows that a member of its fragment holds the arbiter lease.
// Members of other fragments then step down for this fragment first. The initial value is false.
func (s *Service) SetArbiter(here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.arbiter == here || s.mu.stop {
		return
	}
	s.mu.arbiter = here
	if s.mu.actor != nil {
		contain.Send(s.system, s.mu.actor, arbiter{here})
	}
}

// Lost returns the sorted addresses of members that were once listed, are no longer listed, and did
// not leave gracefully. They are sent hellos for a day. The caller owns the slice.
func (s *Service) Lost() []string {
	if d := s.division.Load(); d != nil {
		return slices.Clone(d.lost)
	}
	return nil
}

// Replaced returns the sorted addresses at which, since the last call, another incarnation was
// listed after one that had not left gracefully: its process was killed and started again, or it
// rejoined. If that was at once, the first one has never been lost.
func (s *Service) Replaced() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.mu.replaced
	s.mu.replaced = nil
	slices.Sort(all)
	return slices.Compact(all)
}

func (s *Service) replaced(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.replaced) < maxSeen {
		s.mu.replaced = append(s.mu.replaced, address)
	}
}

// Split returns, by id, the running members of this cluster that have been in conflict with this
// one for longer than its patience, and since when there have been any. It is empty unless the
// cluster is split. The caller owns the slice.
func (s *Service) Split() (others []Member, since time.Time) {
	if d := s.division.Load(); d != nil {
		return slices.Clone(d.others), d.since
	}
	return nil, time.Time{}
}

// leave is called when the member begins a graceful stop: from now on it gives no permits.
func (s *Service) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.actor != nil && !s.mu.stop {
		contain.Send(s.system, s.mu.actor, leave{})
	}
}

func (s *Service) divided(d divided) { s.division.Store(&d) }

// Stopped returns a channel that is closed when the service has stopped and its actor is gone.
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

// WhenUp calls f once, when this member first sees itself listed, which may never happen. Functions
// run one at a time in order of registration. f runs in the caller's goroutine if the member is up
// and no other function is running, otherwise in the goroutine that runs the functions, which is
// initially that of the membership actor. So f must not block or wait for a view. A panic in f is
// logged and ends only f.
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

// Subscribe sends the current *View, if there is one, and each later one to pid, in order. The
// subscriber must be local, and must unsubscribe before it stops. Subscribing twice sends the
// latest view again.
func (s *Service) Subscribe(pid *actor.PID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.mu.to, pid.Equal) {
		s.mu.to = append(s.mu.to, pid)
	}
	if v := s.view.Load(); v != nil {
		contain.Send(s.system, pid, v)
	}
}

// Unsubscribe reverts Subscribe. A view may still be in the mailbox of pid.
func (s *Service) Unsubscribe(pid *actor.PID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.to = slices.DeleteFunc(s.mu.to, pid.Equal)
}

// Stop stops the service: it publishes no more views and sends no more hellos. The last view
// remains. Stop does not wait; see Stopped. Later calls do nothing.
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

// note remembers the addresses of the members of v. The lock is held.
func (s *Service) note(v *View) {
	if s.mu.seen == nil || len(s.mu.seen) > maxSeen {
		s.mu.seen = map[string]string{}
	}
	for _, m := range v.Members {
		s.mu.seen[m.ID] = m.Address
	}
}

// Address returns the address of a member that is or was listed in this incarnation, or an empty
// string. Of very many members, the first ones are no longer known.
func (s *Service) Address(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.seen[id]
}

// publish stores v before it sends it, under the lock, so that a subscriber never gets an older
// view after a newer one.
func (s *Service) publish(v *View) {
	s.mu.Lock()
	if s.mu.stop {
		s.mu.Unlock()
		return
	}
	s.view.Store(v)
	s.note(v)
	for _, pid := range s.mu.to {
		contain.Send(s.system, pid, v)
	}
	if v.Self.Stamp != 0 && !s.mu.ready {
		s.mu.ready = true
		close(s.ready)
	}
	if v.Removed {
		close(s.removed) // the core publishes no view after this one
	}
	s.mu.Unlock()
	s.drain()
}
