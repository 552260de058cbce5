package sharding

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/ask"
)

// ingress is the process behind Region.PID. It is not an actor, so that messages are routed in the
// goroutine of their sender. It cannot be stopped.
type ingress struct{ l *binding }

// addProcesses registers the ingress, the receiver, and a name that detects another type with the
// same leases.
func (l *binding) addProcesses() error {
	for _, of := range []struct {
		name, what string
		process    actor.Process
	}{
		{l.cfg.ingressName(), "region of this type", &ingress{l}},
		{l.cfg.receiverName(), "region of this type", &receiver{l}},
		{"concord-leases-" + l.cfg.LeasePrefix, fmt.Sprintf("type with LeasePrefix %q",
			l.cfg.LeasePrefix), &ingress{l}},
	} {
		pid, ok := l.system.ProcessRegistry.Add(of.process, of.name)
		if !ok {
			return fmt.Errorf("sharding %q: %w: the member has a %s already", l.cfg.Type,
				ErrInvalid, of.what)
		}
		l.processes = append(l.processes, pid)
	}
	l.pid.Store(l.processes[0])
	return nil
}

func (l *binding) removeProcesses() {
	for _, pid := range l.processes {
		l.system.ProcessRegistry.Remove(pid)
	}
}

// SendUserMessage implements actor.Process.
func (i *ingress) SendUserMessage(_ *actor.PID, message any) {
	header, msg, sender := actor.UnwrapEnvelope(message)
	e, err := opened(msg)
	if err != nil {
		i.l.refuse("", message, err)
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
		err = i.l.send(e.ID, value, e.call)
	}
	if err != nil {
		i.l.refuse(e.ID, &outgoing{value: value, call: e.call}, err)
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
func (i *ingress) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (i *ingress) Stop(*actor.PID) {}

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
