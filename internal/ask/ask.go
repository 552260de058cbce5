package ask

import (
	"context"
	"crypto/rand"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/contain"
)

// prefix begins the name of every temporary process. The rest of the name is random: a process that
// restarts at the same address never uses a name of its predecessor again, so it never takes the
// answer to one of its predecessor's questions; and only a member that got the question knows the
// name.
const prefix = "$ask-"

// process receives the answer: it takes the first message and drops the others.
type process struct {
	answer chan any // capacity 1, never closed
}

func (p *process) SendUserMessage(_ *actor.PID, message any) {
	_, msg, _ := actor.UnwrapEnvelope(message)
	select {
	case p.answer <- msg:
	default: // a second answer
	}
}

func (p *process) SendSystemMessage(*actor.PID, any) {}
func (p *process) Stop(*actor.PID)                   {}

// Request sends msg to target from a temporary sender and waits for the first answer. The header of
// the message carries the trace of ctx.
//
// It returns ErrDeadLetter if no process is registered as target, and the cause of ctx if ctx ends
// first; in the latter case the message may still be handled, or already have been. If there is an
// answer when ctx ends, the answer wins. Later answers are dropped.
//
// Request blocks, so it must not be called inside an actor. It is safe for concurrent use.
func Request(ctx context.Context, system *actor.ActorSystem, target *actor.PID,
	msg any) (any, error) {
	if target == nil {
		return nil, ErrDeadLetter
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := &process{answer: make(chan any, 1)}
	self, _ := system.ProcessRegistry.Add(p, prefix+rand.Text()) // 128 bits at least
	defer system.ProcessRegistry.Remove(self)

	contain.Send(system, target, &actor.MessageEnvelope{Header: header(ctx), Message: msg,
		Sender: self})
	select {
	case answer := <-p.answer:
		return result(answer)
	case <-ctx.Done():
	}
	select {
	case answer := <-p.answer:
		return result(answer)
	default:
		return nil, context.Cause(ctx)
	}
}

func result(answer any) (any, error) {
	if _, dead := answer.(*actor.DeadLetterResponse); dead {
		return nil, ErrDeadLetter
	}
	return answer, nil
}
