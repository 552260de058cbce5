package sharding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/internal/contain"
)

// activate starts the entity unless it runs, and returns the PID of its incarnation. It waits for a
// home of the shard, also while the member rejoins, and tries again until ctx ends; so bound ctx.
// Do not call it from an actor, because it blocks. The errors are those of Ask.
//
// A message to the PID goes past the region. It is checked against the tenure like any other, but
// it does not wait while the shard moves, and it is not passed to the next incarnation: what an
// entity has not handled when it ends, and what comes later, becomes a dead letter, so that a
// request is answered with actor.ErrDeadLetter. Then call activate again.
func (f Ref[Msg]) activate(ctx context.Context) (*actor.PID, error) {
	if err := f.r.made(); err != nil {
		return nil, err
	}
	if err := checkID(f.id); err != nil {
		return nil, f.r.refused(err)
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		res, err := f.r.ask(ctx, f.id, &cluster.ActivationRequest{})
		if err == nil {
			if a, ok := res.(*cluster.ActivationResponse); ok && a.Pid != nil {
				return a.Pid, nil
			}
			err = fmt.Errorf("%w: the answer is a %T", ErrUndelivered, res)
		}
		if ctx.Err() != nil || errors.Is(err, ErrClosed) || errors.Is(err, ErrInvalid) ||
			errors.Is(err, ErrBufferFull) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// The pause between two attempts of activate doubles from firstPause to lastPause.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// located is a process that has asked for the PID of an incarnation.
type located struct {
	to          *actor.PID
	incarnation *incarnation
}

// locates returns the sender of a message that asks for the PID of an entity, or nil if a message
// is none.
func locates(value any) *actor.PID {
	if m, ok := value.(*actor.MessageEnvelope); ok {
		if _, ok := m.Message.(*cluster.ActivationRequest); ok {
			return m.Sender
		}
	}
	return nil
}

// locate sends the PID of an incarnation.
func (in *incarnation) locate(to *actor.PID) {
	system := in.shard.binding.system
	pid := actor.NewPID(system.Address(), in.path(in.box.parent()))
	contain.Send(system, to, &cluster.ActivationResponse{Pid: pid})
}

// used counts a message that was sent to the PID of an entity of newFromProps.
func (in *incarnation) used(message any) {
	l := in.shard.binding
	if l.blueprint == nil || l.cfg.Idle == 0 && l.cfg.Limit == 0 {
		return
	}
	switch message.(type) {
	case *actor.ReceiveTimeout, *actor.PoisonPill:
		return
	}
	in.shard.mu.Lock()
	defer in.shard.mu.Unlock()
	if in.shard.incarnation(in.id) == in {
		in.shard.slot.Direct(l.clock.Now(), in.id)
	}
}

// found reports whether the actor exists, and is not known to stop. Then a message to its PID
// reaches it, or becomes a dead letter.
func (m *mailbox) found() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.started && !m.leaving && !m.stoppedNow && !m.closed &&
		m.incarnation.tenure.Check() == nil
}

// unlocate removes and returns the processes that have asked for the PID before the actor existed.
// The caller must hold the mutex.
func (m *mailbox) unlocate() (waiting []*actor.PID) {
	if m.load == nil {
		return nil
	}
	kept := m.load.user[:0]
	for _, p := range m.load.user {
		if to := locates(p.message); to != nil {
			waiting = append(waiting, to)
		} else {
			kept = append(kept, p)
		}
	}
	clear(m.load.user[len(kept):])
	m.load.user = kept
	return waiting
}

// broke ends an incarnation whose stop was broken off by a middleware of the application, since
// Proto.Actor does not complete it. It returns false if message, which was being handled, is not
// part of the stop.
func (m *mailbox) broke(message any) bool {
	switch message.(type) {
	case *actor.Stop, *actor.Terminated:
	default:
		return false
	}
	system, supervisor := m.incarnation.shard.binding.system, m.parent()
	pid := actor.NewPID(system.Address(), m.incarnation.path(supervisor))
	system.ProcessRegistry.Remove(pid)
	m.incarnation.shard.terminated(m.incarnation)
	contain.Send(system, supervisor, &actor.Terminated{Who: pid})
	return true
}

// parent returns the PID of the supervisor.
func (m *mailbox) parent() *actor.PID { return m.invoker.(actor.Context).Parent() }

// ensure ends an incarnation whose actor has terminated, if a middleware of the application has
// kept Stopped from it.
func (s *hostedShard) ensure(who, supervisor *actor.PID) {
	if s.binding.blueprint == nil {
		return
	}
	if in := s.incarnationOf(who, supervisor); in != nil {
		s.terminated(in)
	}
}
