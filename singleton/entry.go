package singleton

import (
	"log/slog"
	"maps"
	"strconv"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/stash"
	"github.com/concord-go/concord/internal/timer"
)

// asked wraps a message of Ask for the local proxy. If the message fails, the answer is a refusal.
type asked struct {
	msg  proto.Message
	call *call
}

// refusal answers asked.
type refusal struct{ err error }

// unwrap returns the message itself. byAsk reports whether its sender understands refusals.
func unwrap(e stash.Entry) (_ stash.Entry, byAsk bool) {
	if a, ok := e.Message.(*asked); ok {
		e.Message = a.msg
		return e, true
	}
	return e, false
}

// portable reports whether a message can leave this process.
func portable(msg any) bool {
	_, ok := msg.(proto.Message)
	return ok
}

// refuse sends a message to the dead letters, and counts it. It answers the sender if the sender
// understands refusals.
func (ml *memberLink) refuse(ctx actor.Context, e stash.Entry, why error) {
	e, byAsk := unwrap(e)
	if byAsk && e.Sender != nil && why == ErrClosed { //nolint:errorlint // as given
		contain.Send(ctx.ActorSystem(), e.Sender, &refusal{why}) // Ask goes on after the rejoining
		return
	}
	ml.binding.counts.refused.Add(1)
	if n, due := ml.binding.refused.Due(timer.ClockOf(ml.binding.system).Now()); due {
		ml.log.Warn("message refused", slog.Any("error", why), slog.Uint64("refused", n))
	}
	if byAsk && e.Sender != nil {
		contain.Send(ctx.ActorSystem(), e.Sender, &refusal{why})
		e.Sender = nil
	}
	contain.DeadLetter(ml.binding.system, ctx.Self(), e.Envelope())
}

// hopped returns e with one more hop; false if e has reached maxHops.
func hopped(e stash.Entry) (stash.Entry, bool) {
	n, _ := strconv.Atoi(e.Header[hopsHeader])
	if n < 0 || n >= maxHops {
		return e, false
	}
	h := maps.Clone(e.Header)
	if h == nil {
		h = map[string]string{}
	}
	h[hopsHeader] = strconv.Itoa(n + 1)
	e.Header = h
	return e, true
}
