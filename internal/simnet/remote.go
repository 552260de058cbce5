package simnet

import (
	"fmt"
	"maps"

	"github.com/asynkron/protoactor-go/actor"
	protoremote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/contain"
)

// remote is the process that a PID of another address resolves to.
type remote struct {
	net  *Net
	from *host
	link *Link
}

// SendUserMessage marshals the message, with header and sender, and passes it to the link.
func (r *remote) SendUserMessage(pid *actor.PID, message any) {
	header, msg, sender := actor.UnwrapEnvelope(message)
	m, raw, err := marshal(msg)
	if err != nil {
		r.net.refuse(fmt.Sprintf("%T", msg))
		r.link.invalid()
		return
	}
	target, from := copyPID(pid), copyPID(sender)
	var h map[string]string
	if header != nil && header.Length() > 0 {
		h = header.ToMap()
	}
	deliver := func(to *actor.ActorSystem) {
		in, err := unmarshal(m, raw)
		if err != nil {
			return // like remoting, which logs it
		}
		e := &actor.MessageEnvelope{Message: in, Sender: copyPID(from)}
		if h != nil {
			e.Header = maps.Clone(h)
		}
		contain.Send(to, copyPID(target), e)
	}
	p := Packet{From: r.link.dir.from, To: r.link.dir.to, Target: pid.Id, Message: m,
		Size: len(raw)}
	if r.net.hold(r.from, func() {
		r.send(p, deliver, func() proto.Message { return again(m, raw) })
	}) {
		held := p // the function may run already
		held.Verdict = Held
		r.net.observe(held)
		return
	}
	r.send(p, deliver, nil)
}

// send passes a message to the link. reload recreates the message if it is sent later than it was
// passed.
func (r *remote) send(p Packet, deliver func(*actor.ActorSystem), reload func() proto.Message) {
	if reload != nil {
		p.Message = reload()
	}
	p.Verdict = r.link.carry(p, r.net.up(r.from), deliver)
	r.net.observe(p)
}

// SendSystemMessage counts the message as invalid: Watch does not work over this network.
func (r *remote) SendSystemMessage(*actor.PID, any) { r.link.invalid() }

// Stop counts the call as invalid: actors of other systems cannot be stopped.
func (r *remote) Stop(*actor.PID) { r.link.invalid() }

// marshal returns the message and its current bytes. The message is kept only for its type.
func marshal(msg any) (proto.Message, []byte, error) {
	if s, ok := msg.(protoremote.RootSerializable); ok {
		serialised, err := s.Serialize()
		if err != nil {
			return nil, nil, err
		}
		msg = serialised
	}
	m, ok := msg.(proto.Message)
	if !ok {
		return nil, nil, fmt.Errorf("simnet: %T is not a protobuf message", msg)
	}
	raw, err := proto.Marshal(m)
	return m, raw, err
}

func unmarshal(like proto.Message, raw []byte) (any, error) {
	m := like.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	if s, ok := m.(protoremote.RootSerialized); ok {
		return s.Deserialize()
	}
	return m, nil
}

// again returns the message as it was when marshalled.
func again(like proto.Message, raw []byte) proto.Message {
	m := like.ProtoReflect().New().Interface()
	_ = proto.Unmarshal(raw, m)
	return m
}

// copyPID returns a copy without the process cached in the PID.
func copyPID(pid *actor.PID) *actor.PID {
	if pid == nil {
		return nil
	}
	c := actor.NewPID(pid.Address, pid.Id)
	c.RequestId = pid.RequestId
	return c
}
