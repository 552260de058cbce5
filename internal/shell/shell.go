package shell

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/timer"
)

// Core is a state machine without a clock: what it does depends on nothing but the events it is given, and when.
type Core[E, F any] interface {
	// Step takes one event, of this moment, and returns what to do, in order. The effects are valid until the
	// next call.
	Step(now time.Time, ev E) []F
	// NextWake is when the core wants Config.Wake at the latest; zero: it does not. A wake may come
	// at any other time too.
	NextWake() time.Time
}

// Config of a shell. Core, Wake and CarryOut are required.
type Config[E, F any] struct {
	Core     Core[E, F]
	Wake     E                      // lets time pass
	CarryOut func(actor.Context, F) // one effect; it may call Shell.Step
	Stepped  func()                 // after each step, before its effects
	Settled  func(actor.Context)    // when there is nothing left to do; it may call Shell.Step
}

// Shell drives a core. Its methods are for the actor only.
type Shell[E, F any] struct {
	cfg      Config[E, F]
	timer    *timer.Timer
	at       time.Time // that the timer is armed for
	events   []E       // that wait
	effects  []F       // of the last step, that are left
	busy     bool
	stepping bool
}

// New returns a shell that is not started.
func New[E, F any](cfg Config[E, F]) *Shell[E, F] { return &Shell[E, F]{cfg: cfg} }

// Start is called when the actor has started, and again when it was restarted.
func (s *Shell[E, F]) Start(ctx actor.Context) {
	if s.timer == nil {
		s.timer = timer.New(ctx.ActorSystem(), ctx.Self())
	}
}

// Stop is called when the actor is stopping: there are no wakes any more.
func (s *Shell[E, F]) Stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// Now returns the time that the core goes by.
func (s *Shell[E, F]) Now() time.Time { return s.timer.Now() }

// Step hands an event to the core, carries out what follows and arms the timer. Called in the middle of that, it leaves
// the event until the effects before it have been carried out.
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

// Interrupted reports whether the last step did not return: the core panicked, or a function that it called did or
// ended the goroutine.
func (s *Shell[E, F]) Interrupted() bool { return s.stepping }

// Left reports whether there are effects to be carried out, or events that wait.
func (s *Shell[E, F]) Left() bool { return len(s.effects) > 0 || len(s.events) > 0 }

// CarryOn goes on after a panic, or after the goroutine has ended: it carries out the effects that are left, then those
// that it is given, and takes the events that wait.
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

// next takes the next effect, or event, and reports whether there was one.
func (s *Shell[E, F]) next(ctx actor.Context) bool {
	switch {
	case len(s.effects) > 0:
		e := s.effects[0]
		s.effects = s.effects[1:]
		s.cfg.CarryOut(ctx, e)
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

// arm sees to it that the core is woken in time. A timer that fires too soon does no harm, so it is not set again
// for every event.
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
