package fence

import (
	"fmt"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
)

// Envelope returns msg for an actor, with the token of the tenure in the header that is named
// Header. TokenOfMessage reads it there. The error is that of the tenure's Check, or ErrInvalid
// for a nil tenure; then send nothing.
//
// Send the envelope with Send, to an actor at this or another member, or to the PID of a
// sharding.Region, which passes headers on to its entity. For a reply, set its Sender first:
// Request would put it into another envelope. If msg is an envelope, Envelope returns a copy with
// its other headers and its Sender.
func Envelope(t coordination.Tenure, msg any) (*actor.MessageEnvelope, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: no tenure", ErrInvalid)
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	out := &actor.MessageEnvelope{Message: msg}
	if in, ok := msg.(*actor.MessageEnvelope); ok {
		out.Message, out.Sender, out.Header = in.Message, in.Sender, maps.Clone(in.Header)
	}
	out.SetHeader(Header, t.Token().String())
	return out, nil
}

// TokenOfMessage returns the token in the header of a message, which an actor gets from
// MessageHeader of its context. Otherwise the error is ErrInvalid: the token must be in the form
// that Envelope writes.
func TokenOfMessage(h actor.ReadonlyMessageHeader) (coordination.Token, error) {
	if h == nil || !slices.Contains(h.Keys(), Header) {
		return 0, fmt.Errorf("%w: no header %s", ErrInvalid, Header)
	}
	return parseToken(h.Get(Header))
}
