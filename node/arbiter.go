package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/early"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	"github.com/concord-go/concord/node/internal/arbiter"
	pb "github.com/concord-go/concord/proto"
)

// ArbiterConfig configures the lease that decides which side of a partition hosts singletons and
// shards. It must be the same on all members.
//
// While members are missing, the oldest member of each side tries to acquire the lease: at once on
// a side that sees a majority, later the fewer members the side sees. Guarded work continues on the
// side that holds the lease. It is stopped on every other side, also when the store does not
// answer. The lease is released once all members are back.
//
// The arbiter decides where guarded work runs, and which side gives way when the partition heals.
// It is not what prevents a second instance: that is guaranteed by the lease of each singleton and
// shard, with or without an arbiter.
type ArbiterConfig struct {
	// Lease is the name of the lease in the lease store. It must name the cluster, if clusters
	// share the store.
	Lease string `yaml:"lease"`
	// Members is the minimum number of members in the cluster. A side with fewer needs the lease.
	// Default 1.
	Members int `yaml:"members"`
	// Hold is how long members may be missing before anything changes. Raising it tolerates longer
	// flaps of the provider, and lets a side that will lose the right to host keep hosting for
	// longer. Default 2s.
	Hold time.Duration `yaml:"hold"`
	// Delay is how much longer a side without a majority waits before it tries to acquire than a
	// side with a majority: half of Delay with exactly half of the members, nearly all of it with
	// few. It should exceed the difference between the times at which the providers of the two
	// sides report a cut. Default 5s.
	Delay time.Duration `yaml:"delay"`
	// Lapse is how long a member assumes, without hearing from the oldest member of its side, that
	// the oldest holds the lease. It must be below coordination.Config.Drain by more than the
	// delivery time of a message. Default 3s.
	Lapse time.Duration `yaml:"lapse"`
}

// Validate returns all problems at once; each matches ErrInvalid.
func (c ArbiterConfig) Validate() error {
	var errs []error
	if c.Lease == "" {
		errs = append(errs, fmt.Errorf("%w: Arbiter.Lease, the name of the lease, must be set",
			ErrInvalid))
	} else if err := coordination.CheckName(c.Lease); err != nil {
		errs = append(errs, fmt.Errorf("%w: Arbiter.Lease: %w", ErrInvalid, err))
	}
	if err := c.core().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: Arbiter: %w", ErrInvalid, err))
	}
	return errors.Join(errs...)
}

func (c ArbiterConfig) core() arbiter.Config {
	return arbiter.Config{Members: c.Members, Hold: c.Hold, Delay: c.Delay,
		Lapse: c.Lapse}.WithDefaults()
}

const (
	arbiterName = "concord.arbiter" // name of the arbiter's actor
	atArbiter   = "arbiter"         // the arbiter's key at the gate
	maxFormer   = 256
)

// startArbiter starts the arbiter of one life. It shuts the gate at once, and begins when the
// member is up. stop notifies the other members that this member leaves, shuts the gate, and waits
// until the lease is released. Call it after guarded work has been handed over and before the
// session is closed.
func startArbiter(system *actor.ActorSystem, session *coordination.Session,
	cfg ArbiterConfig) (stop func(context.Context) error, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if lapse, drain := cfg.core().Lapse, session.Drain(); lapse >= drain {
		return nil, fmt.Errorf("%w: Arbiter.Lapse (%v) must be below Session.Drain (%v)",
			ErrInvalid, lapse, drain)
	}
	s := &arbiterShell{
		system: system, members: membership.Attach(system), lease: session.Lease(cfg.Lease),
		cfg:     cfg.core(),
		stopped: make(chan struct{}),
	}
	gate.Of(system).Shut(atArbiter, "the arbiter has not decided yet which side hosts")
	s.members.WhenUp(func(membership.Member) { s.spawn() })
	return s.stop, nil
}

// arbiterShell connects the core with the lease, the members and the gate. Only its actor accesses
// the fields outside mu.
type arbiterShell struct {
	system  *actor.ActorSystem
	members *membership.Service
	lease   *coordination.Lease
	cfg     arbiter.Config
	stopped chan struct{} // closed when the actor has stopped
	calls   sync.WaitGroup

	mu struct {
		sync.Mutex
		pid    *actor.PID
		stop   bool                           // no actor is spawned any more
		closed bool                           // no grants are kept any more
		grants map[uint64]*coordination.Grant // by attempt
	}

	core   *arbiter.Core
	shell  *shell.Shell[any, any]
	view   *membership.View
	former map[string]uint64 // incarnations, by id, of members no longer listed; at most maxFormer
}

// Private messages.
type (
	arbiterTried struct {
		op  uint64
		err error
	}
	arbiterLost  struct{ op uint64 }
	arbiterLeave struct{}
)

func (s *arbiterShell) spawn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stop {
		return
	}
	pid, err := s.system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return s },
		early.Mailbox(), bugs.Guardian(arbiterName, nil)), arbiterName)
	if err != nil {
		s.system.Logger().Error("arbiter not started", slog.Any("error", err))
		return
	}
	s.mu.pid = pid
}

func (s *arbiterShell) stop(ctx context.Context) error {
	s.mu.Lock()
	s.mu.stop = true
	pid := s.mu.pid
	s.mu.Unlock()
	if pid == nil {
		return nil
	}
	contain.Send(s.system, pid, &arbiterLeave{})
	released := make(chan struct{})
	go func() { <-s.stopped; s.calls.Wait(); close(released) }()
	select {
	case <-released:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("arbiter lease %q: %w", s.lease.Name(), context.Cause(ctx))
	}
}

// Receive implements actor.Actor.
func (s *arbiterShell) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.core, s.view = arbiter.New(s.cfg), nil
		s.begin()
		s.former = map[string]uint64{}
		s.shell = shell.New(shell.Config[any, any]{Name: arbiterName, Core: s.core,
			Wake: arbiter.Wake{}, CarryOut: s.carryOut, Failed: s.failed})
		s.shell.Start(ctx)
		s.members.Subscribe(ctx.Self())
	case *membership.View:
		s.onView(ctx, m)
	case *pb.Envelope:
		if from, v, ok := s.open(m); ok {
			s.step(ctx, arbiter.Heard{From: from, Verdict: v})
		}
	case *timer.Fired:
		s.shell.Fired(ctx, m)
	case *arbiterTried:
		s.onTried(ctx, m)
	case *arbiterLost:
		s.step(ctx, arbiter.Lost{Op: m.op})
	case *arbiterLeave:
		s.step(ctx, arbiter.Leave{})
		ctx.Stop(ctx.Self())
	case *actor.Restarting:
		s.quit(ctx)
	case *actor.Stopping:
		s.quit(ctx)
	case *actor.Stopped:
		close(s.stopped)
	}
}

// quit releases everything: timer, grants and subscription.
func (s *arbiterShell) quit(ctx actor.Context) {
	s.shell.Stop()
	s.members.Unsubscribe(ctx.Self())
	s.mu.Lock()
	grants := s.mu.grants
	s.mu.closed, s.mu.grants = true, nil
	s.mu.Unlock()
	for _, g := range grants {
		s.giveUp(g)
	}
}

func (s *arbiterShell) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed, s.mu.grants = false, map[uint64]*coordination.Grant{}
}

// keep records the grant of an attempt. It returns false if the actor has stopped.
func (s *arbiterShell) keep(op uint64, g *coordination.Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.closed {
		s.mu.grants[op] = g
	}
	return !s.mu.closed
}

func (s *arbiterShell) step(ctx actor.Context, e any) { s.shell.Step(ctx, e) }

func (s *arbiterShell) carryOut(ctx actor.Context, e any) {
	switch e := e.(type) {
	case arbiter.Gate:
		s.set(e)
	case arbiter.Tell:
		s.members.SetArbiter(e.Here)
	case arbiter.Try:
		s.try(ctx.Self(), e.Op)
	case arbiter.Release:
		s.release(e.Op)
	case arbiter.Send:
		s.send(ctx, e)
	}
}

// failed continues after an effect that panicked. A gate whose state is uncertain is shut.
func (s *arbiterShell) failed(ctx actor.Context, e any) {
	switch e := e.(type) {
	case arbiter.Gate:
		gate.Of(s.system).Shut(atArbiter, "a bug of this library; see the log")
	case arbiter.Try:
		s.step(ctx, arbiter.Tried{Op: e.Op, Result: arbiter.Unknown})
	case arbiter.Tell:
		s.members.SetArbiter(false)
	case arbiter.Release:
		s.release(e.Op)
	}
}

// set opens or shuts the gate.
func (s *arbiterShell) set(g arbiter.Gate) {
	log := s.system.Logger()
	if g.Open {
		log.Info("arbiter: guarded work may run here", slog.String("state", s.core.String()))
		gate.Of(s.system).Let(atArbiter)
		return
	}
	log.Warn("arbiter: guarded work must not run here", slog.String("why", g.Why))
	gate.Of(s.system).Shut(atArbiter, g.Why)
}

func (s *arbiterShell) onView(ctx actor.Context, v *membership.View) {
	s.remember(v)
	s.view = v
	e := arbiter.View{Self: v.Self.ID, Removed: v.Removed}
	if oldest, ok := v.Oldest(""); ok {
		e.Oldest = oldest.ID
	}
	for _, m := range v.Members {
		e.Members = append(e.Members, m.ID)
	}
	s.step(ctx, e)
}

// remember keeps the members that v no longer lists: messages from them may still arrive.
func (s *arbiterShell) remember(v *membership.View) {
	if s.view == nil {
		return
	}
	for _, m := range s.view.Members {
		if _, listed := v.Find(m.ID); !listed && m.Incarnation != 0 {
			if len(s.former) >= maxFormer {
				clear(s.former)
			}
			s.former[m.ID] = m.Incarnation
		}
	}
}

// try makes one attempt outside the actor, and reports to the actor if the lease is lost later.
func (s *arbiterShell) try(self *actor.PID, op uint64) {
	tell := func(m any) { contain.Send(s.system, self, m) }
	s.calls.Go(func() {
		// before the core gives up
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Operation*7/8)
		defer cancel()
		g, err := s.lease.TryAcquire(ctx)
		if err == nil && !s.keep(op, g) {
			s.giveUp(g)
			return
		}
		tell(&arbiterTried{op, err})
		if err == nil {
			context.AfterFunc(g.Context(), func() { tell(&arbiterLost{op}) })
		}
	})
}

func (s *arbiterShell) onTried(ctx actor.Context, m *arbiterTried) {
	e := arbiter.Tried{Op: m.op, Result: arbiter.Unknown}
	switch {
	case m.err == nil:
		e.Result = arbiter.Held
	case errors.Is(m.err, coordination.ErrHeld):
		e.Result = arbiter.Taken
	default:
		s.system.Logger().Debug("arbiter lease: outcome unknown", slog.Any("error", m.err))
	}
	s.step(ctx, e)
}

func (s *arbiterShell) release(op uint64) {
	s.mu.Lock()
	g := s.mu.grants[op]
	delete(s.mu.grants, op)
	s.mu.Unlock()
	if g != nil {
		s.giveUp(g)
	}
}

// giveUp releases a grant outside the actor. The session retries a release that the store does not
// confirm.
func (s *arbiterShell) giveUp(g *coordination.Grant) {
	s.calls.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Operation)
		defer cancel()
		if err := g.Release(ctx); err != nil {
			s.system.Logger().Warn("arbiter lease not released", slog.Any("error", err))
		}
	})
}

// send sends the verdict to other members of the view.
func (s *arbiterShell) send(ctx actor.Context, e arbiter.Send) {
	for _, id := range e.To {
		to, listed := s.view.Find(id)
		if !listed {
			continue
		}
		h := wire.Header{Cluster: s.view.Cluster, Member: s.view.Self.ID,
			From: s.view.Self.Incarnation,
			To:   to.Incarnation}
		contain.Send(ctx.ActorSystem(), actor.NewPID(to.Address, arbiterName),
			wire.Seal(h, wire.ArbiterVerdict, encodeVerdict(e.Verdict)))
	}
}

// open returns the sender and its verdict. It accepts messages only from members that the view
// lists or once listed, in the incarnation that it listed, and only if they are addressed to this
// incarnation.
func (s *arbiterShell) open(env *pb.Envelope) (from string, v arbiter.Verdict, ok bool) {
	if s.view == nil {
		return "", v, false
	}
	h, manifest, payload, err := wire.Open(env, s.view.Cluster)
	if err != nil || manifest != wire.ArbiterVerdict || h.To != 0 &&
		h.To != s.view.Self.Incarnation {
		return "", v, false
	}
	m, listed := s.view.Find(h.Member)
	if !listed {
		m.Incarnation, listed = s.former[h.Member]
	}
	if !listed || m.Incarnation != 0 && m.Incarnation != h.From {
		return "", v, false
	}
	v, ok = decodeVerdict(payload)
	return h.Member, v, ok
}

// A verdict is encoded as one byte, its kind, and the number of members as a varint.

func encodeVerdict(v arbiter.Verdict) []byte {
	return binary.AppendUvarint([]byte{byte(v.Kind)}, uint64(v.Members))
}

// decodeVerdict rejects anything that encodeVerdict does not produce for a valid verdict. It
// ignores trailing bytes, which later versions may use.
func decodeVerdict(data []byte) (v arbiter.Verdict, ok bool) {
	if len(data) < 2 {
		return v, false
	}
	n, width := binary.Uvarint(data[1:])
	if width <= 0 || n > math.MaxInt32 {
		return v, false
	}
	v = arbiter.Verdict{Kind: arbiter.Kind(data[0]), Members: int(n)}
	return v, v.Valid()
}
