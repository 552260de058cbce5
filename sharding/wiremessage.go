package sharding

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/concord-go/concord/internal/linear"
	"github.com/concord-go/concord/internal/wire"
	"github.com/concord-go/concord/sharding/internal/core"
)

// outgoing is a message of this process on its way to an entity, and who waits for its result.
type outgoing struct {
	value    any              // proto.Message, or *actor.MessageEnvelope of one
	call     *call            // nil: not by Ask, whose sender handles refusals
	delivery *pendingDelivery // nil: not a delivery
}

// maxMessage bounds an encoded message to an entity at another member, and maxWireMessage the
// message with its header and names, so that it fits into an envelope.
const (
	maxMessage     = 4_000_000
	maxWireMessage = wire.MaxData - 16
)

// sizeOf returns the size that a message counts for in a buffer.
func sizeOf(value any) int {
	_, msg, _ := actor.UnwrapEnvelope(value)
	return proto.Size(msg.(proto.Message))
}

// scratch holds buffers for the payloads of messages until they are copied into a batch.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// mostScratch bounds the buffers that scratch keeps.
const mostScratch = 64 << 10

// pack calls do with the encoding of a message for another member, without its shard, token and
// number. It is valid during the call. With an error, do is not called.
func pack(id string, value any, self string, do func(*wireMessage)) error {
	header, msg, sender := actor.UnwrapEnvelope(value)
	body := msg.(proto.Message)
	buf := scratch.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= mostScratch {
			scratch.Put(buf)
		}
	}()
	payload, err := marshal((*buf)[:0], body)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUndelivered, err)
	case len(payload) > maxMessage:
		return fmt.Errorf("%w: %d bytes, at most %d", errTooLarge, len(payload), maxMessage)
	}
	*buf = payload
	m := wireMessage{entity: id, typ: string(body.ProtoReflect().Descriptor().FullName()),
		payload: payload}
	if sender != nil {
		m.senderAddress, m.senderID = sender.Address, sender.Id
		if sender.Address == local { // the PID is older than the address of this system
			m.senderAddress = self
		}
	}
	if header != nil && header.Length() > 0 {
		m.header = header.ToMap()
	}
	numbers := wireMessage{shard: maxShards, token: math.MaxUint64, number: math.MaxUint64,
		delivery: math.MaxUint64, again: true, origin: 1}
	if n := m.size() + numbers.size(); n > maxWireMessage {
		return fmt.Errorf("%w: %d bytes with its header, at most %d", errTooLarge, n,
			maxWireMessage)
	}
	do(&m)
	return nil
}

// marshal appends the encoded message, and recovers from a panic in its methods.
func marshal(b []byte, m proto.Message) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return proto.MarshalOptions{}.MarshalAppend(b, m)
}

// errNoMessage means that only the number of a message arrived.
var errNoMessage = errors.New("no message")

// unpack returns the content of a message and its sender. With an error, data has no body but still
// its number.
func (t *types) unpack(m *wireMessage) (data core.Data, sender *actor.PID, err error) {
	data = core.Data{Shard: m.shard, Token: m.token, Number: m.number}
	if m.senderID != "" {
		sender = actor.NewPID(m.senderAddress, m.senderID)
	}
	if m.entity == "" {
		return data, sender, errNoMessage
	}
	if err := checkID(m.entity); err != nil {
		return data, sender, err
	}
	msg, err := t.unmarshal(m.typ, m.payload)
	if err != nil {
		return data, sender, err
	}
	data.Body = core.Body{ID: m.entity, Value: msg, Size: len(m.payload)}
	if sender != nil || len(m.header) > 0 {
		data.Body.Value = &actor.MessageEnvelope{Header: m.header, Message: msg, Sender: sender}
	}
	if m.delivery != 0 {
		data.Delivery, data.Again = m.delivery, m.again
		data.Body.Value = &incomingDelivery{value: data.Body.Value, origin: m.origin}
	}
	return data, sender, nil
}

// types caches the type of the last message of a batch.
type types struct {
	name string
	last protoreflect.MessageType
}

func (t *types) find(name string) (protoreflect.MessageType, error) {
	if t.last == nil || t.name != name {
		found, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
		if err != nil {
			return nil, fmt.Errorf("type %.80q: %w", name, err)
		}
		t.name, t.last = name, found
	}
	return t.last, nil
}

// unmarshal decodes a message, and recovers from a panic in its methods.
func (t *types) unmarshal(name string, payload []byte) (m proto.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	of, err := t.find(name)
	if err != nil {
		return nil, err
	}
	m = of.New().Interface()
	return m, linear.Unmarshal(payload, m)
}
