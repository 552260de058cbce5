package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/early"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	"github.com/concord-go/concord/node/internal/arbiter"
	pb "github.com/concord-go/concord/proto"
)

// majorityLease and restLease return the names of the leases that decide which side of a partition
// hosts.
func majorityLease(cluster string) string { return "concord.majority/" + cluster }
func restLease(cluster string) string     { return "concord.rest/" + cluster }

const (
	arbiterName = "concord.arbiter" // name of the arbiter's actor
	atArbiter   = "arbiter"         // the arbiter's key at the gate
	maxFormer   = 256
)

// startArbiter starts the arbiter of one incarnation. It shuts the gate at once, and begins when
// the member is up. stop notifies the other members that this member leaves, shuts the gate, and
// waits until the leases are released. Call it after guarded work has been handed over and before
// the session is closed. foreign is called if this member does not use the lease store of the
// others. counted is set to the number of members.
func startArbiter(system *actor.ActorSystem, session *coordination.Session, cluster string,
	cfg arbiter.Config, foreign func(error), counted *atomic.Int64,
) (stop func(context.Context) error) {
	cfg.TTL, cfg.Session = session.TTL(), session.ID()
	s := &arbiterShell{
		system: system, members: membership.Attach(system), session: session,
		leases: [2]*coordination.Lease{
			arbiter.Majority: session.Lease(majorityLease(cluster)),
			arbiter.Rest:     session.Lease(restLease(cluster)),
		},
		cfg:     cfg,
		foreign: foreign, counted: counted,
		stopped: make(chan struct{}),
	}
	gate.Of(system).Shut(atArbiter, "just started")
	lifecycle.OnCheck(system, "majority", s.check)
	s.members.WhenUp(func(membership.Member) { s.spawn() })
	return s.stop
}

// arbiterShell connects the core with the leases, the members and the gate. Only its actor accesses
// the fields outside mu.
type arbiterShell struct {
	system  *actor.ActorSystem
	members *membership.Service
	session *coordination.Session
	leases  [2]*coordination.Lease // by arbiter.Name
	cfg     arbiter.Config
	stopped chan struct{} // closed when the actor has stopped
	foreign func(error)
	counted *atomic.Int64
	calls   sync.WaitGroup

	mu struct {
		sync.Mutex
		pid    *actor.PID
		stop   bool                           // no actor is spawned any more
		closed bool                           // no grants are kept any more
		grants map[uint64]*coordination.Grant // by attempt
		cutOff string                         // why another side hosts; empty: this one may
	}

	core   *arbiter.Core
	shell  *shell.Shell[any, any]
	said   stepLog
	late   *timer.Timer // of a member that does not host since its start
	view   *membership.View
	former map[string]uint64 // incarnations, by id, of members no longer listed; at most maxFormer
}

// Private messages.
type (
	arbiterTried struct {
		op  uint64
		err error
	}
	arbiterProbed struct {
		op  uint64
		err error
	}
	arbiterCompared struct {
		op     uint64
		result arbiter.Result
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
		return fmt.Errorf("lease %q: %w", s.leases[arbiter.Majority].Name(), context.Cause(ctx))
	}
}

// Receive implements actor.Actor.
func (s *arbiterShell) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.core, s.view = arbiter.New(s.cfg), nil
		s.said = stepLog{log: s.system.Logger(), address: s.system.Address()}
		s.late = timer.New(s.system, ctx.Self())
		s.late.Set(lasts, nil)
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
		if s.late.Mine(m) {
			s.said.late()
			return
		}
		s.shell.Fired(ctx, m)
	case *arbiterTried:
		s.onTried(ctx, m)
	case *arbiterProbed:
		s.onProbed(ctx, m)
	case *arbiterCompared:
		s.step(ctx, arbiter.Compared{Op: m.op, Result: m.result})
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
	s.late.Stop()
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

func (s *arbiterShell) step(ctx actor.Context, e any) {
	s.shell.Step(ctx, e)
	_, all := s.core.Counts()
	s.counted.Store(int64(all))
}

func (s *arbiterShell) carryOut(ctx actor.Context, e any) {
	switch e := e.(type) {
	case arbiter.Gate:
		s.set(e)
	case arbiter.Tell:
		s.members.SetArbiter(e.Here)
	case arbiter.Try:
		s.try(ctx.Self(), e)
	case arbiter.Probe:
		s.probe(ctx.Self(), e.Op)
	case arbiter.Compare:
		s.compare(ctx.Self(), e)
	case arbiter.Foreign:
		s.foreign(s.otherStore(e.Leader))
	case arbiter.ForeignPeer:
		s.warnOfOtherStore(e.Member)
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
	case arbiter.Probe:
		s.step(ctx, arbiter.Probed{Op: e.Op, Result: arbiter.Unknown})
	case arbiter.Compare:
		s.step(ctx, arbiter.Compared{Op: e.Op, Result: arbiter.Unknown})
	case arbiter.Tell:
		s.members.SetArbiter(false)
	case arbiter.Release:
		s.release(e.Op)
	}
}

// set opens or shuts the gate, and logs it.
func (s *arbiterShell) set(g arbiter.Gate) {
	now := timer.ClockOf(s.system).Now()
	here, all := s.core.Counts()
	s.mu.Lock()
	s.mu.cutOff = ""
	if !g.Open && (all > 0 || s.core.Elsewhere()) {
		s.mu.cutOff = g.Why
	}
	s.mu.Unlock()
	if g.Open {
		gate.Of(s.system).Let(atArbiter)
		s.said.opened(now, here, all)
		return
	}
	gate.Of(s.system).Shut(atArbiter, g.Why)
	s.said.closed(now, g.Why, here, all, len(s.members.Lost()) > 0,
		s.core.Ended() || lifecycle.Of(s.system).Stopping())
}

// errStoreAway is for a side whose members may host, but cannot renew leases or acquire others.
var errStoreAway = errors.New("members are missing, and the lease store does not answer: " +
	"what runs here ends with its leases, and a side that reaches the store hosts then")

// check returns why this side of the cluster does not host, for /readyz.
func (s *arbiterShell) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.mu.cutOff != "":
		return errors.New(s.mu.cutOff)
	case len(s.members.Lost()) > 0 && s.session.Failing():
		return errStoreAway
	}
	return nil
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
func (s *arbiterShell) try(self *actor.PID, e arbiter.Try) {
	tell := func(m any) { contain.Send(s.system, self, m) }
	s.calls.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Operation())
		defer cancel()
		g, err := s.leases[e.Lease].TryAcquire(ctx)
		if err == nil && !s.keep(e.Op, g) {
			s.giveUp(g)
			return
		}
		tell(&arbiterTried{e.Op, err})
		if err == nil {
			context.AfterFunc(g.Context(), func() { tell(&arbiterLost{e.Op}) })
		}
	})
}

// probe finds out whether a living session, other than this one, holds the lease of the majority.
// The record of a session that has crashed looks the same until another one has waited for its TTL.
func (s *arbiterShell) probe(self *actor.PID, op uint64) {
	lease := s.leases[arbiter.Majority]
	s.calls.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Operation())
		defer cancel()
		h, err := lease.Holder(ctx)
		if err == nil && h.Session != "" && h.Session != s.session.ID() {
			var g *coordination.Grant
			if g, err = lease.TryAcquire(ctx); err == nil {
				s.giveUp(g)
			}
		}
		contain.Send(s.system, self, &arbiterProbed{op, err})
	})
}

// compare finds out whether a session of another member holds the lease of the majority in the
// store of this member.
func (s *arbiterShell) compare(self *actor.PID, e arbiter.Compare) {
	lease := s.leases[arbiter.Majority]
	s.calls.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Operation())
		defer cancel()
		result := arbiter.Unknown
		switch h, err := lease.Holder(ctx); {
		case err != nil:
			s.system.Logger().Debug("lease stores not compared", slog.Any("error", err))
		case h.Session == e.Session:
			result = arbiter.Taken
		default:
			result = arbiter.Held
		}
		contain.Send(s.system, self, &arbiterCompared{e.Op, result})
	})
}

// otherStore is the error of a member that does not use the lease store of its leader.
func (s *arbiterShell) otherStore(leader string) error {
	m, _ := s.view.Find(leader)
	return fmt.Errorf("%w: Store: member %s says that it holds the lease %q, and the lease store of "+
		"this member, %s, does not know of it: they name different stores; start this member with "+
		"the store of the others, or stop all to change it", ErrInvalid, m.Address,
		s.leases[arbiter.Majority].Name(), s.system.Address())
}

// warnOfOtherStore logs that another member does not use the lease store of its leader.
func (s *arbiterShell) warnOfOtherStore(member string) {
	m, _ := s.view.Find(member)
	oldest, _ := s.view.Oldest("")
	s.system.Logger().Warn("a member names another lease store",
		slog.String("address", m.Address),
		slog.String("why", fmt.Sprintf("its store does not know of the lease %q, which the "+
			"oldest member, %s, holds", s.leases[arbiter.Majority].Name(), oldest.Address)),
		slog.String("then", "it hosts nothing, and ends"),
		slog.String("check", "its Store, and that of the oldest member: start it with the store "+
			"of the others, or stop all to change it"))
}

func (s *arbiterShell) onTried(ctx actor.Context, m *arbiterTried) {
	s.step(ctx, arbiter.Tried{Op: m.op, Result: s.result(m.err)})
}

func (s *arbiterShell) onProbed(ctx actor.Context, m *arbiterProbed) {
	s.step(ctx, arbiter.Probed{Op: m.op, Result: s.result(m.err)})
}

func (s *arbiterShell) result(err error) arbiter.Result {
	switch {
	case err == nil:
		return arbiter.Held
	case errors.Is(err, coordination.ErrHeld):
		return arbiter.Taken
	}
	s.system.Logger().Debug("which side hosts is not known", slog.Any("error", err))
	return arbiter.Unknown
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
		ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Operation())
		defer cancel()
		if err := g.Release(ctx); err != nil {
			s.system.Logger().Info("lease not released", slog.Any("error", err))
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

// A verdict is encoded as one byte, its kind, the number of members as a varint, and the length of
// the session's ID in one byte and that ID, unless it is empty.

func encodeVerdict(v arbiter.Verdict) []byte {
	b := binary.AppendUvarint([]byte{byte(v.Kind)}, uint64(v.Members))
	if v.Session != "" {
		b = append(append(b, byte(len(v.Session))), v.Session...)
	}
	return b
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
	if rest := data[1+width:]; len(rest) > 1 && int(rest[0]) < len(rest) {
		v.Session = string(rest[1 : 1+rest[0]])
	}
	return v, v.Valid()
}
