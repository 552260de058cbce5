package timer

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// Clock provides the timers of a system and the time of its components.
type Clock interface {
	// Now returns the time. Differences between results are those of the clock.
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d has passed on this clock. stop cancels the
	// call and reports whether it did so before f was called.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// extensionID is allocated once per process, since the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// Host lets a test replace the clock below the timers of a system and observe the timers.
type Host struct {
	// Clock replaces the clock of the process if it is not nil.
	Clock Clock
	// Armed is called for every Set, Disarmed for every Stop that ends an arming, in the goroutine
	// of the actor. Either may be nil.
	Armed    func(self *actor.PID, d time.Duration, tag any)
	Disarmed func(self *actor.PID, tag any)
}

// ExtensionID implements extensions.Extension.
func (*Host) ExtensionID() extensions.ExtensionID { return extensionID }

// Attach puts h below all timers of system. Call it before any actor is spawned there.
func Attach(system *actor.ActorSystem, h Host) {
	if h.Clock == nil {
		h.Clock = process{}
	}
	system.Extensions.Register(&h)
}

// ClockOf returns the clock of a system.
func ClockOf(system *actor.ActorSystem) Clock { return hostOf(system).Clock }

func hostOf(system *actor.ActorSystem) *Host {
	if h, ok := system.Extensions.Get(extensionID).(*Host); ok {
		return h
	}
	return &Host{Clock: process{}}
}

// process is the clock of this process.
type process struct{}

func (process) Now() time.Time { return time.Now() }

func (process) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}
