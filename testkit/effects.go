package testkit

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Effect is an action of an isolated actor: *Sent, *Spawned, *Watched, *Unwatched, *StopRequested,
// *Armed, *Disarmed, *Fired, *Logged, *Panicked or *Stopped.
type Effect interface{ effect() string }

type (
	// Sent is a message that the actor has sent by any means. A message to itself is also
	// delivered.
	Sent struct {
		To      *actor.PID
		Message any
		Sender  *actor.PID // nil if there is none
	}
	// Spawned is a child or another actor that the actor has spawned. An actor that does nothing
	// runs in its place.
	Spawned struct {
		PID   *actor.PID
		Props *actor.Props
	}
	// Watched means that the actor watches another actor.
	Watched struct{ PID *actor.PID }
	// Unwatched means that the actor no longer watches another actor.
	Unwatched struct{ PID *actor.PID }
	// StopRequested means that the actor has requested another actor to stop.
	StopRequested struct{ PID *actor.PID }
	// Armed is a timer of Concord's components that the actor has set, replacing any earlier
	// setting. Timers that an actor creates by other means show as a Sent to itself when they fire.
	Armed struct {
		In  time.Duration
		Tag any
	}
	// Disarmed is a timer that the actor has stopped before handling it.
	Disarmed struct{ Tag any }
	// Fired is a timer that has fired; its message has been delivered.
	Fired struct {
		After time.Duration // since Isolate
		Tag   any
	}
	// Logged is a line at Debug or above logged by the actor, or by the system on its behalf.
	Logged struct {
		Level   slog.Level
		Message string
		Attrs   map[string]string // as text
	}
	// Panicked means that the actor has panicked. Its supervisor decides about the restart.
	Panicked struct{ Reason any }
	// Stopped means that the actor has stopped.
	Stopped struct{}
)

func (e *Sent) effect() string {
	return fmt.Sprintf("sent %s to %s, sender %s", describe(e.Message), name(e.To), name(e.Sender))
}
func (e *Spawned) effect() string       { return "spawned " + name(e.PID) }
func (e *Watched) effect() string       { return "watched " + name(e.PID) }
func (e *Unwatched) effect() string     { return "unwatched " + name(e.PID) }
func (e *StopRequested) effect() string { return "told to stop " + name(e.PID) }
func (e *Armed) effect() string {
	return fmt.Sprintf("timer %v armed for %s", e.Tag, short(e.In))
}
func (e *Disarmed) effect() string { return fmt.Sprintf("timer %v disarmed", e.Tag) }
func (e *Fired) effect() string {
	return fmt.Sprintf("timer %v fired after %s", e.Tag, short(e.After))
}
func (e *Logged) effect() string {
	return "logged " + line{e.Level, e.Message, e.Attrs}.String()
}
func (e *Panicked) effect() string { return fmt.Sprintf("panicked: %v", e.Reason) }
func (e *Stopped) effect() string  { return "stopped" }
