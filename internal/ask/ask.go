package ask

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// seq names the asks of this process. The registry's own generator was renamed between the
// supported Proto.Actor versions, so it is not used.
var seq atomic.Uint64

// process is what the answer is sent to: it takes the first message and drops the others.
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

// Request sends msg to target with a sender of its own and waits for the first answer.
//
// The error is ErrDeadLetter when nobody is registered as target, and the cause of ctx when it ends
// first: the message may then still have been, or be, handled. An answer that is already there
// wins over a context that has ended. Later answers are dropped.
//
// Request blocks, so it is not for use inside an actor. It may be called from any goroutine.
func Request(ctx context.Context, system *actor.ActorSystem, target *actor.PID, msg any) (any, error) {
	if target == nil {
		return nil, ErrDeadLetter
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := &process{answer: make(chan any, 1)}
	self, _ := system.ProcessRegistry.Add(p, "$ask"+strconv.FormatUint(seq.Add(1), 36))
	defer system.ProcessRegistry.Remove(self)

	system.Root.RequestWithCustomSender(target, msg, self)
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
