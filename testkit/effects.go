package testkit

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Effect is something that an isolated actor has done: *Sent, *Spawned, *Watched, *Unwatched,
// *StopRequested, *Armed, *Disarmed, *Fired, *Logged, *Panicked or *Stopped.
type Effect interface{ effect() string }

type (
	// Sent is a message that the actor has sent, by whatever means. One to itself is delivered as well.
	Sent struct {
		To      *actor.PID
		Message any
		Sender  *actor.PID // nil: nobody
	}
	// Spawned is a child, or another actor, that the actor has made. An actor that does nothing runs in
	// its place.
	Spawned struct {
		PID   *actor.PID
		Props *actor.Props
	}
	// Watched says that the actor watches another one.
	Watched struct{ PID *actor.PID }
	// Unwatched says that it does not any more.
	Unwatched struct{ PID *actor.PID }
	// StopRequested says that the actor has told another one to stop.
	StopRequested struct{ PID *actor.PID }
	// Armed is a timer of Concord's components that the actor has set, in place of what it was set to before.
	// Timers that an actor makes by other means show as a Sent to itself when they run down.
	Armed struct {
		In  time.Duration
		Tag any
	}
	// Disarmed is one that the actor has stopped before it was handled.
	Disarmed struct{ Tag any }
	// Fired is one that has run down; its message has been delivered.
	Fired struct {
		After time.Duration // since Isolate
		Tag   any
	}
	// Logged is a line that the actor, or the system on its behalf, has logged at Debug or above.
	Logged struct {
		Level   slog.Level
		Message string
		Attrs   map[string]string // as text
	}
	// Panicked says that the actor has panicked. It is restarted, as its supervisor decides.
	Panicked struct{ Reason any }
	// Stopped says that the actor has stopped.
	Stopped struct{}
)

func (e *Sent) effect() string {
	return fmt.Sprintf("sent %s to %s, sender %s", describe(e.Message), name(e.To), name(e.Sender))
}
func (e *Spawned) effect() string       { return "spawned " + name(e.PID) }
func (e *Watched) effect() string       { return "watched " + name(e.PID) }
func (e *Unwatched) effect() string     { return "unwatched " + name(e.PID) }
func (e *StopRequested) effect() string { return "told to stop " + name(e.PID) }
func (e *Armed) effect() string         { return fmt.Sprintf("timer %v armed for %s", e.Tag, short(e.In)) }
func (e *Disarmed) effect() string      { return fmt.Sprintf("timer %v disarmed", e.Tag) }
func (e *Fired) effect() string         { return fmt.Sprintf("timer %v fired after %s", e.Tag, short(e.After)) }
func (e *Logged) effect() string        { return "logged " + line{e.Level, e.Message, e.Attrs}.String() }
func (e *Panicked) effect() string      { return fmt.Sprintf("panicked: %v", e.Reason) }
func (e *Stopped) effect() string       { return "stopped" }
