package contain

import (
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/bugs"
)

// quiet is the least time between two lines about functions that fail at the same thing.
const quiet = 10 * time.Second

// Call calls f, which runs functions of the application on this goroutine. If one panics, that
// is logged, with its stack and attrs, at most once in ten seconds, and affects nothing else.
func Call(system *actor.ActorSystem, what string, f func(), attrs ...any) {
	defer contained(system, what, attrs)
	f()
}

// contained recovers a panic of the application. Defer it.
func contained(system *actor.ActorSystem, what string, attrs []any) {
	if p := recover(); p != nil {
		unlogged, loud := bugs.OfFunction(system, what).Due(time.Now(), quiet)
		if !loud {
			return
		}
		defer func() { _ = recover() }() // the log handler is the application's too
		system.Logger().Error("a function of the application failed", append(attrs,
			slog.String("what", what), slog.Any("panic", p), slog.Int("unlogged", unlogged),
			slog.String("stack", string(debug.Stack())))...)
	}
}

// Send sends a message. Processes of the application run on this goroutine, and if the receiver has
// stopped, so do the subscribers of the event stream, which get the dead letter: one that panics is
// logged, and affects nothing else.
func Send(system *actor.ActorSystem, to *actor.PID, message any) {
	defer contained(system, "taking a message", nil)
	system.Root.Send(to, message)
}

// Forward is like Send for the message that ctx holds, with its sender.
func Forward(ctx actor.Context, to *actor.PID) {
	defer contained(ctx.ActorSystem(), "taking a message", nil)
	ctx.Forward(to)
}

// Watch watches an actor, which may have stopped.
func Watch(ctx actor.Context, who *actor.PID) {
	defer contained(ctx.ActorSystem(), "taking a dead letter", nil)
	ctx.Watch(who)
}

// Publish passes an event to the subscribers of the event stream, on a goroutine of its own since
// one may end it. what and attrs are those of Call. The channel is closed when all have
// returned.
func Publish(system *actor.ActorSystem, what string, event any, attrs ...any) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		Call(system, what, func() { system.EventStream.Publish(event) }, attrs...)
	}()
	return done
}

// DeadLetter makes a message a dead letter, which subscribers of the event stream may receive.
func DeadLetter(system *actor.ActorSystem, to *actor.PID, message any) {
	defer contained(system, "taking a dead letter", nil)
	system.DeadLetter.SendUserMessage(to, message)
}
