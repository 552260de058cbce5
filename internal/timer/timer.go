package timer

import (
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/contain"
)

// Timer is a one-shot timer of one actor, with at most one arming at a time. Its methods may be
// called only by that actor. The actor must call Stop when it is stopping.
type Timer struct {
	system *actor.ActorSystem
	self   *actor.PID
	host   *Host
	cancel func() bool // of the current arming; nil if there is none
	// gen is the generation of the current arming; 0 if there is none. The firing goroutine reads
	// it to avoid a useless message, Mine to decide.
	gen  atomic.Uint64
	last uint64 // the highest generation used
	tag  any    // of the current arming
}

// Fired is the message a timer sends to its actor. It is never sent to another process.
type Fired struct {
	// Tag is the tag passed to Set.
	Tag   any
	timer *Timer
	gen   uint64
}

// IgnoreDeadLetterLogging keeps a Fired sent to a stopped actor out of the log.
func (*Fired) IgnoreDeadLetterLogging() {}

// New returns an unarmed timer that sends to self.
func New(system *actor.ActorSystem, self *actor.PID) *Timer {
	return &Timer{system: system, self: self, host: hostOf(system)}
}

// Set arms the timer to send a Fired with tag after d. It replaces any earlier arming, whose
// message Mine then no longer accepts. A d of zero or less fires at once, still as a message.
func (t *Timer) Set(d time.Duration, tag any) {
	t.disarm()
	t.last++
	t.tag = tag
	f := &Fired{Tag: tag, timer: t, gen: t.last}
	t.gen.Store(f.gen)
	t.cancel = t.host.Clock.AfterFunc(d, f.fire)
	if t.host.Armed != nil {
		t.host.Armed(t.self, d, tag)
	}
}

func (f *Fired) fire() {
	if f.timer.gen.Load() == f.gen {
		contain.Send(f.timer.system, f.timer.self, f)
	}
}

// Now returns the time on the timer's clock.
func (t *Timer) Now() time.Time { return t.host.Clock.Now() }

// SetAt is like Set for a time on that clock.
func (t *Timer) SetAt(at time.Time, tag any) { t.Set(at.Sub(t.Now()), tag) }

// Stop cancels the arming, if any.
func (t *Timer) Stop() {
	if t.Armed() && t.host.Disarmed != nil {
		t.host.Disarmed(t.self, t.tag)
	}
	t.disarm()
}

func (t *Timer) disarm() {
	t.gen.Store(0)
	if t.cancel != nil {
		t.cancel()
		t.cancel = nil
	}
}

// Armed reports whether a Fired is pending, or in the mailbox.
func (t *Timer) Armed() bool { return t.gen.Load() != 0 }

// Mine reports whether f comes from the current arming of this timer, and disarms the timer. It
// returns true at most once per Set, and never after Stop. It returns false for timers of an
// earlier instance of a restarted actor.
func (t *Timer) Mine(f *Fired) bool {
	if f == nil || f.timer != t || f.gen == 0 || f.gen != t.gen.Load() {
		return false
	}
	t.gen.Store(0)
	t.cancel = nil
	return true
}
