package sharding

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/ask"
)

// door is the process behind Region.PID. It is not an actor, so that messages are routed in the
// goroutine of their sender. It cannot be stopped.
type door struct{ l *binding }

// openDoors registers the door, the inlet, and a name that detects another type with the same
// leases.
func (l *binding) openDoors() error {
	for _, of := range []struct {
		name, what string
		process    actor.Process
	}{
		{l.cfg.doorName(), "region of this type", &door{l}},
		{l.cfg.inletName(), "region of this type", &inlet{l}},
		{"concord-leases-" + l.cfg.LeasePrefix, fmt.Sprintf("type with LeasePrefix %q",
			l.cfg.LeasePrefix), &door{l}},
	} {
		pid, ok := l.system.ProcessRegistry.Add(of.process, of.name)
		if !ok {
			return fmt.Errorf("sharding %q: %w: the member has a %s already", l.cfg.Type,
				ErrInvalid, of.what)
		}
		l.doors = append(l.doors, pid)
	}
	l.pid.Store(l.doors[0])
	return nil
}

func (l *binding) shutDoors() {
	for _, pid := range l.doors {
		l.system.ProcessRegistry.Remove(pid)
	}
}

// SendUserMessage implements actor.Process.
func (d *door) SendUserMessage(_ *actor.PID, message any) {
	header, msg, sender := actor.UnwrapEnvelope(message)
	e, err := opened(msg)
	if err != nil {
		d.l.refuse("", message, err)
		return
	}
	var value any = e.Message
	if sender != nil || header != nil && header.Length() > 0 {
		out := &actor.MessageEnvelope{Message: e.Message, Sender: sender}
		if header != nil && header.Length() > 0 {
			out.Header = header.ToMap()
		}
		value = out
	}
	err = check(e.ID, e.Message)
	if err == nil {
		err = d.l.send(e.ID, value, e.call)
	}
	if err != nil {
		d.l.refuse(e.ID, &parcel{value: value, call: e.call}, err)
	}
}

// opened returns msg as an Envelope.
func opened(msg any) (*Envelope, error) {
	e, ok := msg.(*Envelope)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: a %T without an *Envelope", ErrInvalid, msg)
	case e == nil:
		return nil, fmt.Errorf("%w: no message: a nil %T", ErrInvalid, e)
	}
	return e, nil
}

// SendSystemMessage implements actor.Process. It ignores system messages.
func (d *door) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (d *door) Stop(*actor.PID) {}

// checkMessage returns ErrInvalid for what must not be sent to an entity as a user message.
func checkMessage(msg proto.Message) error {
	switch msg.(type) {
	case nil:
		return fmt.Errorf("%w: no message", ErrInvalid)
	case actor.SystemMessage, actor.AutoReceiveMessage, actor.MessageBatch:
		return fmt.Errorf("%w: a %T is not a message for an entity", ErrInvalid, msg)
	}
	if ask.IsNil(msg) {
		return fmt.Errorf("%w: no message: a nil %T", ErrInvalid, msg)
	}
	return nil
}
