package sharding

import (
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/sharding/internal/core"
)

// parcel is a message of this process on the indirect path, through the control actor.
type parcel struct {
	value   any      // message or *actor.MessageEnvelope
	byAsk   bool     // its sender handles refusals
	promise *promise // nil: not a delivery
}

// room is the overhead of an envelope beyond the payload of a message.
const room = 16 << 10

// maxParcel bounds a parcel, so that one fits into an envelope.
const maxParcel = wire.MaxPayload - 16

// plainSize is the size that a message without protobuf encoding counts for.
const plainSize = 256

// sizeOf returns the size that a message counts for in a buffer.
func sizeOf(value any) int {
	_, msg, _ := actor.UnwrapEnvelope(value)
	if m, ok := msg.(proto.Message); ok {
		return proto.Size(m)
	}
	return plainSize
}

// pack returns the wire form of a message for another member. With an error, the result has only
// the number of the message, so that the host does not wait for it.
func pack(d core.Data, self string) (out *pb.ShardingParcel, err error) {
	out = &pb.ShardingParcel{Shard: uint32(d.Shard), Token: d.Token, Number: d.Number} //nolint:gosec // below maxShards
	header, msg, sender := actor.UnwrapEnvelope(d.Body.Value.(*parcel).value)
	m, ok := msg.(proto.Message)
	if !ok {
		return out, ErrNotProtobuf
	}
	payload, err := marshal(m)
	switch {
	case err != nil:
		return out, fmt.Errorf("%w: %w", ErrUndelivered, err)
	case len(payload) > wire.MaxPayload-room:
		return out, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(payload), wire.MaxPayload-room)
	}
	out.Entity, out.Type, out.Payload = d.Body.ID, string(proto.MessageName(m)), payload
	if d.Delivery != 0 {
		out.Delivery, out.Again, out.Origin = d.Delivery, d.Again, d.Body.Value.(*parcel).promise.origin
	}
	if sender != nil {
		out.SenderAddress, out.SenderId = sender.Address, sender.Id
		if sender.Address == local { // the PID is older than the address of this system
			out.SenderAddress = self
		}
	}
	if header != nil && header.Length() > 0 {
		out.Header = header.ToMap()
	}
	if n := atMost(out); n > maxParcel {
		return &pb.ShardingParcel{Shard: out.Shard, Token: out.Token, Number: out.Number},
			fmt.Errorf("%w: %d bytes with its header, at most %d", ErrTooLarge, n, maxParcel)
	}
	return out, nil
}

// atMost returns a size that the encoded parcel does not exceed, in less time than its exact size
// takes.
func atMost(p *pb.ShardingParcel) int {
	n := parcelOverhead + len(p.Entity) + len(p.Type) + len(p.Payload) + len(p.SenderAddress) + len(p.SenderId)
	for key, value := range p.Header {
		n += headerOverhead + len(key) + len(value)
	}
	return n
}

// What a parcel and an entry of its header take beyond texts and payload: tags, lengths and
// numbers, each as long as it can be.
const (
	parcelOverhead = 6 + 2*11 + 5*6 + 11 + 2 + 9
	headerOverhead = 3 * 6
)

// outgoing collects parcels for one member, so that they travel in one envelope.
type outgoing struct {
	to      core.Member
	parcels []*pb.ShardingParcel
	bytes   int

	confirmed []*pb.ShardingConfirmed // by shard
}

// collect adds a parcel. It returns the parcels that must be posted first, if any.
func (o *outgoing) collect(p *pb.ShardingParcel) (full *pb.ShardingData) {
	full = o.reserve(atMost(p) + 8) // its length and tag
	o.parcels = append(o.parcels, p)
	return full
}

// reserve makes room for some bytes. It returns what must be posted first, if any.
func (o *outgoing) reserve(n int) (full *pb.ShardingData) {
	if o.bytes+n > wire.MaxPayload {
		full = o.take()
	}
	o.bytes += n
	return full
}

func (o *outgoing) empty() bool { return len(o.parcels) == 0 && len(o.confirmed) == 0 }

// take removes and returns the collected parcels.
func (o *outgoing) take() *pb.ShardingData {
	d := &pb.ShardingData{Parcels: o.parcels, Confirmed: o.confirmed}
	o.parcels, o.bytes, o.confirmed = nil, 0, nil
	return d
}

// confirm adds the confirmation of a delivery. It returns what must be posted first, if any.
func (o *outgoing) confirm(m core.Confirm) (full *pb.ShardingData) {
	full = o.reserve(confirmSize)
	shard := uint32(m.Shard) //nolint:gosec // below maxShards
	i := slices.IndexFunc(o.confirmed, func(s *pb.ShardingConfirmed) bool { return s.Shard == shard })
	if i < 0 {
		i = len(o.confirmed)
		o.confirmed = append(o.confirmed, &pb.ShardingConfirmed{Shard: shard})
	}
	o.confirmed[i].Numbers = append(o.confirmed[i].Numbers, m.Number)
	return full
}

// confirmSize is at least the size of a confirmation that is alone for its shard.
const confirmSize = 24

// marshal encodes a message, and recovers from a panic in its methods.
func marshal(m proto.Message) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return proto.Marshal(m)
}

// errNoMessage means that only the number of a message arrived.
var errNoMessage = errors.New("no message")

// unpack is the inverse of pack. With an error, data has no body but still its number.
func unpack(in *pb.ShardingParcel) (data core.Data, sender *actor.PID, err error) {
	if in == nil {
		return data, nil, errors.New("empty parcel")
	}
	if err := fits(in.Shard, in.Token); err != nil {
		return data, nil, err
	}
	data = core.Data{Shard: int(in.Shard), Token: in.Token, Number: in.Number}
	if in.SenderId != "" {
		sender = actor.NewPID(in.SenderAddress, in.SenderId)
	}
	if in.Entity == "" {
		return data, sender, errNoMessage
	}
	if err := checkID(in.Entity); err != nil {
		return data, sender, err
	}
	msg, err := unmarshal(in.Type, in.Payload)
	if err != nil {
		return data, sender, err
	}
	data.Body = core.Body{ID: in.Entity, Value: msg, Size: len(in.Payload)}
	if sender != nil || len(in.Header) > 0 {
		data.Body.Value = &actor.MessageEnvelope{Header: in.Header, Message: msg, Sender: sender}
	}
	if in.Delivery != 0 {
		data.Delivery, data.Again = in.Delivery, in.Again
		data.Body.Value = &delivered{value: data.Body.Value, origin: in.Origin}
	}
	return data, sender, nil
}

// unmarshal decodes a message, and recovers from a panic in its methods.
func unmarshal(name string, payload []byte) (m proto.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("type %.80q: %w", name, err)
	}
	m = t.New().Interface()
	return m, proto.Unmarshal(payload, m)
}
