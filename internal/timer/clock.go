package timer

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// Clock is where the timers of a system come from, and what its components take for the time.
type Clock interface {
	// Now returns the time. Differences of two of them are those of the clock.
	Now() time.Time
	// AfterFunc calls f in its own goroutine when d has passed on this clock. stop withdraws it and reports
	// whether that was in time.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// extensionID is taken once per process: the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// Host is what a test puts below the timers of a system.
type Host struct {
	// Clock replaces that of the process. nil: it does not.
	Clock Clock
	// Armed is told of every Set, Disarmed of every Stop that ends an arming, in the goroutine of the actor.
	// nil: nobody is.
	Armed    func(self *actor.PID, d time.Duration, tag any)
	Disarmed func(self *actor.PID, tag any)
}

// ExtensionID implements extensions.Extension.
func (*Host) ExtensionID() extensions.ExtensionID { return extensionID }

// Attach puts h below all timers of system. Call it before anything is spawned there.
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
