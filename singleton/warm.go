package singleton

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/leases"
	"github.com/concord-go/concord/internal/linear"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// maxState is the maximum size in bytes of the encoded state that an instance leaves to the next
// one. With the name of its type, of at most 512 bytes, it fits into one message between members.
const maxState = 255 << 10

// Warm is implemented by an instance that leaves its state to the next one in a planned move: its
// member leaves, or another one should host.
//
// The state saves work; it is never guaranteed to arrive. It is lost in a crash, with a lost lease,
// when the instance was stopped because HandOver was over, when it panicked or stopped by itself,
// when no other member was known, and when the next host could not be reached. Then TakeOver is not
// called, and the instance starts as it would without Warm. Keep data that must not be lost in a
// store.
//
// The state is never stale: it is handed over once, and only if no tenure was between that of the
// giver and this one.
type Warm interface {
	actor.Actor
	// HandOver returns the state for the next instance, or nil if there is none. It is called on
	// the goroutine of Receive, after the last message and before *actor.Stopping. A state of more
	// than 255 KiB is not passed on: an error is logged and counted in Stats.StateLost.
	HandOver() proto.Message
	// TakeOver receives that state, with the token of the tenure that left it. It is called on the
	// goroutine of Receive, before *actor.Started. An instance that is made again after it has
	// failed, even in Started, does not get the state.
	TakeOver(giver coordination.Token, state proto.Message)
}

// leftState is the state that an instance leaves, in wire format.
type leftState = pb.SingletonState

// errState is wrapped when a state is not passed on.
var errState = errors.New("singleton: state of the instance not handed over")

// packed returns the state of an instance in wire format.
func packed(token coordination.Token, w Warm) (_ *pb.SingletonState, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: HandOver panicked: %v", errState, p)
		}
	}()
	m := w.HandOver()
	if m == nil {
		return nil, nil
	}
	name := m.ProtoReflect().Descriptor().FullName()
	data, err := proto.Marshal(m)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", errState, name, err)
	case len(data) > maxState:
		return nil, fmt.Errorf("%w: %s has %d bytes, it must have at most %d", errState, name,
			len(data), maxState)
	case len(name) > maxTypeName:
		return nil, fmt.Errorf("%w: the name of type %.80s has %d bytes, it must have at most %d",
			errState, name, len(name), maxTypeName)
	}
	return &pb.SingletonState{Token: uint64(token), Type: string(name), State: data}, nil
}

// unpacked returns the message that was packed.
func unpacked(s *pb.SingletonState) (proto.Message, error) {
	if len(s.State) > maxState {
		return nil, fmt.Errorf("%w: %d bytes, it must have at most %d", errState, len(s.State),
			maxState)
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(s.Type))
	if err != nil {
		return nil, fmt.Errorf("%w: message type %.80q: %w", errState, s.Type, err)
	}
	m := t.New().Interface()
	if err := linear.Unmarshal(s.State, m); err != nil {
		return nil, fmt.Errorf("%w: message of type %s: %w", errState, s.Type, err)
	}
	return m, nil
}

// handoverState holds the states that are received from and sent to other members. It belongs to
// the manager.
type handoverState struct {
	got   *pb.SingletonState // from the last host; nil: none
	given chan struct{}      // closed when the next host has our state
	token uint64             // of our state
}

// loseState counts a state that does not reach the next instance.
func (m *manager) loseState(err error) {
	m.binding.counts.stateLost.Add(1)
	m.log.Error("singleton state lost in a hand-over: the next instance starts without it", slog.Any("error", err))
}

// handState sends the state that the instance has left to the next host. handover.given is closed
// when the next host has it.
func (m *manager) handState(ctx actor.Context, left *atomic.Pointer[pb.SingletonState]) {
	s := left.Swap(nil)
	if s == nil {
		return
	}
	to, ok := m.machine.Next()
	if !ok { // as when all members stop
		m.binding.counts.stateLost.Add(1)
		m.log.Info("singleton state lost: no other member may host")
		return
	}
	m.handover.given, m.handover.token = make(chan struct{}), s.Token
	m.send(ctx, m.self(), to, m.binding.cfg.managerName(), wire.SingletonState, s)
}

// onState keeps the state that the last host has sent, for the next tenure.
func (m *manager) onState(ctx actor.Context, from core.Member, s *pb.SingletonState) {
	if len(s.State) > maxState || len(s.Type) > maxTypeName {
		m.ignore(slog.Int("state bytes", len(s.State)))
		return
	}
	m.handover.got = s
	m.send(ctx, m.self(), from, m.binding.cfg.managerName(), wire.SingletonStateTaken,
		&pb.SingletonStateTaken{Token: s.Token})
}

// maxTypeName is longer than the name of any message type that people write.
const maxTypeName = 512

func (m *manager) onStateTaken(t *pb.SingletonStateTaken) {
	if m.handover.given != nil && m.handover.token == t.Token {
		close(m.handover.given)
		m.handover.given = nil
	}
}

// inherited returns a function that hands the received state to the first instance of a tenure, and
// forgets the state. It returns nil if there is none.
func (m *manager) inherited(grant *coordination.Grant) func(actor.Actor) {
	s := m.handover.got
	if s == nil || s.Token != leases.Held.Previous(grant) {
		return nil
	}
	m.handover.got = nil
	msg, err := unpacked(s)
	if err != nil {
		m.loseState(err)
		return nil
	}
	return func(a actor.Actor) {
		if w, ok := a.(Warm); ok {
			w.TakeOver(coordination.Token(s.Token), msg)
		}
	}
}

// stateWait bounds the time for which a release waits until the next host has the state.
const stateWait = time.Second
