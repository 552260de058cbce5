package singleton

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/ask"
)

// Ask sends msg to the singleton and waits for the first reply. It sends msg once: only the caller
// knows whether it is safe to send it again. Ask also waits for a member to host and, while the
// member rejoins, for the next incarnation; bound it with ctx. Do not call it from an actor: it
// blocks.
//
// Errors: ErrUndelivered, ErrBufferFull, ErrClosed and node.ErrRejoining mean that the message was
// certainly not handled. ErrUnknown means that ctx ended first, or that the host to which the
// message was sent is gone: its member was dropped, or it has lost the lease and another tenure has
// begun.
//
// The reply must be a protobuf message too; As gives it its type. If an instance at this member
// replies with another value, such as an error, Ask returns an error that matches none of this
// package and names the type: the message was handled. From another member such a reply does not
// arrive: it is dropped and logged there, and Ask waits until ctx ends.
//
// If the OpenTelemetry span of ctx is recorded, the call is a child of it, concord.singleton.ask,
// and the header of the message continues the trace at the instance, in the format of
// OpenTelemetry's global propagator, which is none by default.
func (s *Singleton) Ask(ctx context.Context, msg proto.Message) (reply proto.Message, err error) {
	if s == nil || s.present == nil {
		return nil, errUnmade
	}
	ctx, end := ask.Span(ctx, meterName, "concord.singleton.ask", func() []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("concord.singleton.name", s.name)}
	})
	defer func() { end(err) }()
	if msg == nil {
		return nil, fmt.Errorf("%w: no message", ErrInvalid)
	}
	if ask.IsNil(msg) {
		return nil, fmt.Errorf("%w: no message: a nil %T", ErrInvalid, msg)
	}
	for l := s.present.Load(); ; {
		if l != nil {
			reply, err := l.ask(ctx, msg)
			if !errors.Is(err, ErrClosed) {
				return reply, err
			}
		}
		next, err := s.present.After(ctx, l)
		if err != nil {
			return nil, err
		}
		l = next
	}
}

// call is a pending Ask, and the token of the last tenure to which its message was sent.
type call = ask.Call[uint64]

// ask returns ErrClosed if this incarnation has certainly not sent the message.
func (l *binding) ask(ctx context.Context, msg proto.Message) (proto.Message, error) {
	ctx, c, ok := l.calls.Begin(ctx)
	if !ok {
		return nil, ErrClosed
	}
	defer l.calls.End(c)
	// Wait until remoting has started: it writes the system's address without a lock, and the PID
	// of every sender reads that address.
	select {
	case <-l.running:
	case <-l.closed:
		return nil, ErrClosed
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w: %w", ErrUndelivered, ask.Unsent(l.running), context.Cause(ctx))
	}
	answer, err := ask.Request(ctx, l.system, l.proxy, &asked{msg, c})
	if refused, ok := answer.(*refusal); ok {
		return nil, refused.err
	}
	switch {
	case err == nil:
		return ask.Reply("singleton", answer)
	case errors.Is(err, ErrClosed):
		return nil, ErrClosed
	case !errors.Is(err, ask.ErrDeadLetter):
		return nil, fmt.Errorf("%w: %w", ErrUnknown, err)
	case l.closing.Load():
		return nil, ErrClosed
	}
	return nil, ErrUndelivered
}

// As returns the reply of Ask as a Res: As[*Ticket](s.Ask(ctx, msg)). If err is not nil, As returns
// it unchanged. If the reply has another type, or is nil, the error matches none of this package
// and names both types: the message was handled.
func As[Res proto.Message](reply proto.Message, err error) (Res, error) {
	return ask.As[Res]("singleton", reply, err)
}
