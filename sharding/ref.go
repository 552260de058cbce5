package sharding

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/sharding/internal/core"
)

// Ref addresses one entity, wherever it is and whether or not it is running. Copying a Ref is
// cheap.
type Ref[Msg proto.Message] struct {
	r  *region
	id string
}

// Ref returns a reference to the entity with this id: UTF-8, from 1 to 512 bytes, without control
// characters. Calls of a Ref with another id, or of a nil Region, return ErrInvalid.
func (r *Region[Msg]) Ref(id string) Ref[Msg] {
	if r == nil {
		return Ref[Msg]{nil, id}
	}
	return Ref[Msg]{r.region, id}
}

// ID returns the id of the entity.
func (f Ref[Msg]) ID() string { return f.id }

// Shard returns the number of the entity's shard, which is an index of Status.Shards. In a region
// of workers, it returns 0 for an id that no worker has.
func (f Ref[Msg]) Shard() int {
	if f.r == nil {
		return 0
	}
	if f.r.numbered {
		n, _ := workerOf(f.id, f.r.shards)
		return n
	}
	return shardOf(f.id, f.r.shards)
}

// String returns the type and the id.
func (f Ref[Msg]) String() string {
	if f.r == nil {
		return "no region/" + f.id
	}
	return f.r.typ + "/" + f.id
}

// Tell sends a message without waiting. Messages of one goroutine to one entity are handled in
// order, each at most once. A nil error means that the message was accepted, not that it will be
// handled. While the home of the shard is unknown or the shard moves, messages wait on this member;
// see Config.Buffer.
//
// After an error the message is certainly not handled: ErrInvalid for an invalid id or message,
// ErrBufferFull, or ErrClosed, which is also returned while the member rejoins. A message that
// turns out to be undeliverable later is counted and becomes a dead letter. One that waits when an
// incarnation of this member ends is the first to be sent in the next one.
func (f Ref[Msg]) Tell(msg Msg) error { return f.r.send(f.id, msg, nil) }

// Request sends a message on behalf of the actor of ctx, to which the entity can respond. Otherwise
// it behaves like Tell, but a message that waits when the incarnation of the actor ends becomes a
// dead letter. The actor is not told if the host is lost after the message was sent there: set a
// timer for an answer that must come.
func (f Ref[Msg]) Request(ctx actor.Context, msg Msg) error {
	return f.r.send(f.id, msg, ctx.Self())
}

func (r *region) send(id string, msg proto.Message, sender *actor.PID) error {
	if err := r.made(); err != nil {
		return err
	}
	if err := check(id, msg); err != nil {
		return r.refused(err)
	}
	l := r.present.Load()
	if l == nil {
		return r.refused(ErrClosed)
	}
	var value any = msg
	if sender != nil {
		value = &actor.MessageEnvelope{Message: msg, Sender: sender}
	}
	return r.refused(l.send(id, value, nil))
}

// refused counts a message whose sender gets err because it was certainly not handled.
func (r *region) refused(err error) error {
	if err != nil && !errors.Is(err, ErrUnknown) {
		r.counts.refused.Add(1)
	}
	return err
}

func check(id string, msg proto.Message) error {
	if err := checkID(id); err != nil {
		return err
	}
	return checkMessage(msg)
}

// Ask sends a message and waits for the first reply. It sends once: whether it is safe to retry
// depends on what the entity does with the message. It also waits for a home of the shard and,
// while the member rejoins, for the next incarnation; bound the wait with ctx. Do not call it from
// an actor, because it blocks.
//
// The errors of Tell, ErrUndelivered and node.ErrRejoining mean that the message was certainly not
// handled. ErrUnknown means that ctx ended first, or that the host to which the message was sent is
// gone: its member was dropped, it has lost the lease of the shard and another tenure has begun, or
// this incarnation of this member has ended.
//
// The reply must be a protobuf message too; As gives it its type. If an entity at this member
// replies with another value, such as an error, Ask returns an error that matches none of this
// package and names the type: the message was handled. From another member such a reply does not
// arrive: it is dropped and logged there, and Ask waits until ctx ends.
//
// If the OpenTelemetry span of ctx is recorded, the call is a child of it, concord.sharding.ask,
// and the header of the message continues the trace at the entity, in the format of
// OpenTelemetry's global propagator, which is none by default.
func (f Ref[Msg]) Ask(ctx context.Context, msg Msg) (reply proto.Message, err error) {
	if err := f.r.made(); err != nil {
		return nil, err
	}
	ctx, end := ask.Span(ctx, meterName, "concord.sharding.ask", func() []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("concord.sharding.type", f.r.typ),
			attribute.String("concord.sharding.entity", f.id)}
	})
	defer func() { end(err) }()
	if err := check(f.id, msg); err != nil {
		return nil, f.r.refused(err)
	}
	return f.r.ask(ctx, f.id, msg)
}

// ask waits for the answer from incarnation to incarnation.
func (r *region) ask(ctx context.Context, id string, msg proto.Message) (proto.Message, error) {
	for l := r.present.Load(); ; {
		if l != nil {
			reply, err := l.ask(ctx, id, msg)
			if !errors.Is(err, ErrClosed) {
				return reply, err
			}
		}
		next, err := r.present.After(ctx, l)
		if err != nil {
			return nil, r.refused(err)
		}
		l = next
	}
}

// call is a pending Ask, and the tenure under which its message was sent to another member.
type call = ask.Call[core.Tenure]

// ask returns ErrClosed if this incarnation has certainly not sent the message.
func (l *binding) ask(ctx context.Context, id string, msg proto.Message) (proto.Message, error) {
	ctx, c, ok := l.calls.Begin(ctx)
	if !ok {
		return nil, ErrClosed
	}
	defer l.calls.End(c)
	// Remoting sets the system's address at its start without a lock, and every sender's PID reads
	// it.
	select {
	case <-l.running:
	case <-l.closed:
		return nil, ErrClosed
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, l.region.refused(fmt.Errorf("%w: %w: %w", ErrUndelivered,
			ask.Unsent(l.running), context.Cause(ctx)))
	}
	answer, err := ask.Request(ctx, l.system, l.processes[0],
		&Envelope{ID: id, Message: msg, call: c})
	if refused, ok := answer.(*refusal); ok {
		return nil, refused.err
	}
	switch {
	case err == nil:
		return ask.Reply("sharding", answer)
	case errors.Is(err, ask.ErrDeadLetter) && l.isClosed():
		return nil, ErrClosed
	case errors.Is(err, ask.ErrDeadLetter):
		return nil, errRefused
	}
	return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
}

// As returns the reply of Ask as a Res: As[*Balance](ref.Ask(ctx, msg)). If err is not nil, As
// returns it unchanged. If the reply has another type, or is nil, the error matches none of this
// package and names both types: the message was handled.
func As[Res proto.Message](reply proto.Message, err error) (Res, error) {
	return ask.As[Res]("sharding", reply, err)
}

func (l *binding) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}
