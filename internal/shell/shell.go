package shell

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/timer"
)

// Core is a state machine without a clock: its behaviour depends only on its events and their
// times.
type Core[E, F any] interface {
	// Step processes one event at time now, and returns the effects in order. The effects are valid
	// until the next call.
	Step(now time.Time, ev E) []F
	// NextWake returns the latest time at which the core wants Config.Wake, or zero if it wants
	// none. A wake may also come at any other time.
	NextWake() time.Time
}

// Config configures a shell. Name, Core, Wake and CarryOut are required.
type Config[E, F any] struct {
	Name     string // of the component, for the log
	Core     Core[E, F]
	Wake     E                      // the event that lets time pass
	CarryOut func(actor.Context, F) // one effect; it may call Shell.Step
	// Failed is called with an effect whose CarryOut has panicked, after the panic was reported. It
	// may call Shell.Step, so that the core does not wait for the effect. Nil: a lost effect is
	// like a lost message.
	Failed  func(actor.Context, F)
	Panics  *atomic.Uint64      // counts the panics of CarryOut; nil: they are not counted
	Stepped func()              // after each step, before its effects
	Settled func(actor.Context) // when no work is left; it may call Shell.Step
}

// Shell drives a core. Its methods must be called by the actor only.
type Shell[E, F any] struct {
	cfg      Config[E, F]
	timer    *timer.Timer
	at       time.Time // the time that the timer is armed for
	events   []E       // pending
	effects  []F       // remaining effects of the last step
	busy     bool
	stepping bool
	plant    func(effect any) // nil outside tests
}

// New returns a shell that is not started.
func New[E, F any](cfg Config[E, F]) *Shell[E, F] { return &Shell[E, F]{cfg: cfg} }

// Start must be called when the actor has started, and again after a restart, in which it continues
// with the remaining work.
func (s *Shell[E, F]) Start(ctx actor.Context) {
	switch {
	case s.timer == nil:
		s.timer, s.plant = timer.New(ctx.ActorSystem(), ctx.Self()), planted(ctx.ActorSystem())
	case s.Left():
		s.CarryOn(ctx)
	default:
		s.stepping = false
		s.arm()
	}
}

// Stop must be called when the actor is stopping. It disarms the timer.
func (s *Shell[E, F]) Stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// Now returns the time of the core's clock.
func (s *Shell[E, F]) Now() time.Time { return s.timer.Now() }

// Step passes an event to the core, carries out the resulting effects and arms the timer. If it is
// called while that is in progress, it queues the event until the preceding effects are done.
func (s *Shell[E, F]) Step(ctx actor.Context, ev E) {
	s.events = append(s.events, ev)
	if !s.busy {
		s.run(ctx)
	}
}

// Fired wakes the core if the message is from the shell's timer.
func (s *Shell[E, F]) Fired(ctx actor.Context, m *timer.Fired) bool {
	if !s.timer.Mine(m) {
		return false
	}
	s.Step(ctx, s.cfg.Wake)
	return true
}

// Interrupted reports whether the last step did not return: the core or a function called by it
// panicked or exited the goroutine.
func (s *Shell[E, F]) Interrupted() bool { return s.stepping }

// Left reports whether effects or events are pending.
func (s *Shell[E, F]) Left() bool { return len(s.effects) > 0 || len(s.events) > 0 }

// CarryOn continues after a panic of a step, or an exit of the goroutine: it carries out the
// remaining effects, then the given ones, and processes the pending events.
func (s *Shell[E, F]) CarryOn(ctx actor.Context, more ...F) {
	s.stepping = false
	s.effects = append(s.effects, more...)
	s.run(ctx)
}

func (s *Shell[E, F]) run(ctx actor.Context) {
	s.busy = true
	defer func() { s.busy = false }()
	for s.next(ctx) {
	}
	s.arm()
}

// next processes the next effect or event, and reports whether there was one.
func (s *Shell[E, F]) next(ctx actor.Context) bool {
	switch {
	case len(s.effects) > 0:
		e := s.effects[0]
		s.effects = s.effects[1:]
		s.carryOut(ctx, e)
	case len(s.events) > 0:
		ev := s.events[0]
		last := copy(s.events, s.events[1:])
		clear(s.events[last:])
		s.events = s.events[:last]
		s.stepping = true
		s.effects = s.cfg.Core.Step(s.timer.Now(), ev)
		s.stepping = false
		if s.cfg.Stepped != nil {
			s.cfg.Stepped()
		}
	default:
		if s.cfg.Settled != nil {
			s.cfg.Settled(ctx)
		}
		return len(s.events) > 0
	}
	return true
}

// carryOut carries out one effect. If that panics, it reports the panic, so that the effects behind
// it are carried out.
func (s *Shell[E, F]) carryOut(ctx actor.Context, e F) {
	defer func() {
		if p := recover(); p != nil {
			bugs.Report(ctx.ActorSystem(), s.cfg.Name, fmt.Sprintf("carrying out a %T", e), p,
				s.cfg.Panics)
			if s.cfg.Failed != nil {
				s.cfg.Failed(ctx, e)
			}
		}
	}()
	if s.plant != nil {
		s.plant(e)
	}
	s.cfg.CarryOut(ctx, e)
}

// arm ensures that the core is woken in time. A timer that fires too early does no harm, so it is
// not reset for every event.
func (s *Shell[E, F]) arm() {
	at := s.cfg.Core.NextWake()
	switch {
	case at.IsZero():
		s.timer.Stop()
	case !s.timer.Armed() || at.Before(s.at):
		s.at = at
		s.timer.SetAt(at, nil)
	}
}
