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
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// MaxState bounds the encoded state that an instance leaves to the next one, in bytes.
const MaxState = 256 << 10

// Warm is implemented by an instance that leaves its state to the next one when it moves as planned: its
// member leaves, or another one should host. The next instance then need not load what this one knew.
//
// State is a saving, never a promise. It is lost in a crash, with a lost lease, when the instance had to be
// stopped because HandOver was over, when it panicked or stopped by itself, when no other member was known,
// and when the next host could not be reached; then TakeOver is not called, and the instance starts as it
// would without. What it must not lose, it keeps in a store.
//
// State is never stale: TakeOver is called only if no tenure was between that of the giver and this one.
type Warm interface {
	actor.Actor
	// HandOver returns what the next instance is to know; nil: nothing. It is called where Receive is, after
	// the last message and before *actor.Stopping. More than MaxState bytes are not passed on: an error is
	// logged and counted in Stats.StateLost.
	HandOver() proto.Message
	// TakeOver gets that, with the token of the tenure that has left it. It is called where Receive is, before
	// *actor.Started. An instance that fails in Started is made again, and is given the state again.
	TakeOver(giver coordination.Token, state proto.Message)
}

// leftState is what an instance leaves, as it travels.
type leftState = pb.SingletonState

// errState is why a state is not passed on.
var errState = errors.New("singleton: state of the instance not handed over")

// packed returns the state of an instance for the wire.
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
	case len(data) > MaxState:
		return nil, fmt.Errorf("%w: %s has %d bytes, it must have at most %d", errState, name, len(data), MaxState)
	}
	return &pb.SingletonState{Token: uint64(token), Type: string(name), State: data}, nil
}

// unpacked returns the message that was packed.
func unpacked(s *pb.SingletonState) (proto.Message, error) {
	if len(s.State) > MaxState {
		return nil, fmt.Errorf("%w: %d bytes, it must have at most %d", errState, len(s.State), MaxState)
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(s.Type))
	if err != nil {
		return nil, fmt.Errorf("%w: message type %.80q: %w", errState, s.Type, err)
	}
	m := t.New().Interface()
	if err := proto.Unmarshal(s.State, m); err != nil {
		return nil, fmt.Errorf("%w: message of type %s: %w", errState, s.Type, err)
	}
	return m, nil
}

// estate is what instances leave and get. It belongs to the manager.
type estate struct {
	got   *pb.SingletonState // from the last host; nil: nothing
	given chan struct{}      // closed when the next host has ours
	token uint64             // of ours
}

// loseState counts a state that does not get to the next instance.
func (m *manager) loseState(err error) {
	m.life.counts.stateLost.Add(1)
	m.log.Error("singleton state lost in a hand-over", slog.Any("error", err))
}

// bequeath sends what the instance has left to the next host. The channel is closed when that has it.
func (m *manager) bequeath(ctx actor.Context, left *atomic.Pointer[pb.SingletonState]) {
	s := left.Swap(nil)
	if s == nil {
		return
	}
	to, ok := m.machine.Next()
	if !ok {
		m.loseState(fmt.Errorf("%w: no other member may host", errState))
		return
	}
	m.estate.given, m.estate.token = make(chan struct{}), s.Token
	m.send(ctx, m.self(), to, m.life.cfg.managerName(), wire.SingletonState, s)
}

// onState keeps what the last host has sent, for the tenure that follows its own.
func (m *manager) onState(ctx actor.Context, from core.Member, s *pb.SingletonState) {
	if len(s.State) > MaxState || len(s.Type) > maxTypeName {
		m.ignore(slog.Int("state bytes", len(s.State)))
		return
	}
	m.estate.got = s
	m.send(ctx, m.self(), from, m.life.cfg.managerName(), wire.SingletonStateTaken, &pb.SingletonStateTaken{Token: s.Token})
}

// maxTypeName is more than any message type has.
const maxTypeName = 1024

func (m *manager) onStateTaken(t *pb.SingletonStateTaken) {
	if m.estate.given != nil && m.estate.token == t.Token {
		close(m.estate.given)
		m.estate.given = nil
	}
}

// inherited returns what the first instance of a tenure takes over, if anything.
func (m *manager) inherited(grant *coordination.Grant) func(actor.Actor) {
	s := m.estate.got
	if s == nil || coordination.Token(s.Token) != grant.Previous() {
		return nil
	}
	msg, err := unpacked(s)
	if err != nil {
		m.loseState(err)
		return nil
	}
	return func(a actor.Actor) {
		if w, ok := a.(Warm); ok {
			w.TakeOver(coordination.Token(s.Token), proto.Clone(msg))
		}
	}
}

// stateWait bounds how long a release waits for the next host to have the state.
const stateWait = time.Second
