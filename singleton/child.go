package singleton

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/contain"
)

// child is the manager's handle of the instance. The zero value is none.
type child struct {
	run  uint64
	pid  *actor.PID
	over *atomic.Bool // told to stop: a pending restart must not bring it back

	up      bool   // it has handled Started; until then, messages are kept
	restart func() // after a panic

	planned *atomic.Bool               // told to stop when its work is done, not at once
	left    *atomic.Pointer[leftState] // the state it leaves
	stack   *atomic.Pointer[string]    // of its last panic
	worked  *atomic.Int64              // how long it ran until it failed or stopped
}

// instanceUp reports to the manager that an instance has handled Started.
type instanceUp struct{ run uint64 }

// IgnoreDeadLetterLogging keeps messages to a stopped manager out of the log.
func (*instanceUp) IgnoreDeadLetterLogging() {}

// hosted wraps an instance. It reports when the instance has handled Started, hands it the state of
// the last one, and collects its own.
type hosted struct {
	actor.Actor
	over  func() bool       // it must not run any more
	take  func(actor.Actor) // nil: there is no state
	up    func()
	leave func(actor.Actor)
	stack *atomic.Pointer[string] // keeps the stack of a panic, which supervision does not pass on

	worked *atomic.Int64
	since  time.Time     // when it had handled Started
	busy   time.Duration // with its last message
}

// Receive implements actor.Actor.
func (h *hosted) Receive(ctx actor.Context) {
	returned, begun := false, time.Now()
	_, ends := ctx.Message().(*actor.Stopping)
	if ends {
		h.report(begun.Add(-h.busy))
	}
	defer func() {
		h.busy = time.Since(begun)
		if !returned {
			h.stack.Store(new(string(debug.Stack())))
			if !ends {
				h.report(begun)
			}
		}
	}()
	h.receive(ctx)
	returned = true
}

// report stores how long the instance has run until then.
func (h *hosted) report(until time.Time) {
	if !h.since.IsZero() {
		h.worked.Store(int64(until.Sub(h.since)))
	}
}

func (h *hosted) receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		if h.take != nil && !h.over() {
			h.take(h.Actor)
		}
		if h.over() { // the lease was lost while the instance was made
			h.Actor = inert{}
			return
		}
		h.Actor.Receive(ctx)
		h.since = time.Now()
		h.up()
	case *actor.Stopping:
		h.leave(h.Actor)
		h.Actor.Receive(ctx)
	default:
		h.Actor.Receive(ctx)
	}
}

// supervising wraps an instance that supervises its children itself.
type supervising struct {
	hosted
	actor.SupervisorStrategy
}

func (h hosted) around(a actor.Actor) actor.Actor {
	h.Actor = a
	if s, ok := a.(actor.SupervisorStrategy); ok {
		return &supervising{h, s}
	}
	return &h
}

// spawn starts an instance, under a name made of its tenure and its number: first, or after a panic
// the result of produce. take hands the state of the last instance to first, and to no other.
func (m *manager) spawn(ctx actor.Context, run uint64, tenure coordination.Tenure,
	first actor.Actor, take func(actor.Actor)) child {
	over, planned, left := new(atomic.Bool), new(atomic.Bool), new(atomic.Pointer[leftState])
	stack, worked := new(atomic.Pointer[string]), new(atomic.Int64)
	system, manager := ctx.ActorSystem(), ctx.Self()
	h := hosted{
		over:   func() bool { return over.Load() || tenure.Check() != nil },
		take:   take,
		stack:  stack,
		worked: worked,
		up:     func() { contain.Send(system, manager, &instanceUp{run}) },
		leave: func(a actor.Actor) {
			w, warm := a.(Warm)
			if !warm || !planned.Load() {
				return
			}
			state, err := packed(tenure.Token(), w)
			if err != nil {
				m.loseState(err)
			}
			left.Store(state)
		},
	}
	props := actor.PropsFromProducer(func() actor.Actor {
		if h.over() {
			return inert{}
		}
		if first != nil {
			made := h.around(first)
			first, h.take = nil, nil
			return made
		}
		worked.Store(0)
		a, why, trace := m.produce(tenure)
		if why != nil {
			stack.Store(&trace)
			return broken{why}
		}
		return h.around(a)
	})
	pid, err := ctx.SpawnNamed(props, fmt.Sprintf("%d-%d", tenure.Token(), run))
	if err != nil {
		// numbers do not repeat
		panic(fmt.Errorf("singleton: instance %d of tenure %d: %w", run, tenure.Token(), err))
	}
	return child{run: run, pid: pid, over: over, planned: planned, left: left, stack: stack,
		worked: worked}
}

func (c child) is(pid *actor.PID) bool { return c.pid != nil && pid != nil && c.pid.Equal(pid) }

// ran returns how long the instance ran after it had handled Started, without the last message that
// it handled.
func (c child) ran() time.Duration { return time.Duration(c.worked.Load()) }

// trace returns the stack of the last panic of the instance.
func (c child) trace() string {
	if s := c.stack.Load(); s != nil {
		return *s
	}
	return ""
}

// there reports whether the instance is still registered. Then it has not terminated, whatever a
// message says. Proto.Actor removes an actor from its registry before it reports the termination to
// others.
func (c child) there(ctx actor.Context) bool {
	_, ok := ctx.ActorSystem().ProcessRegistry.GetLocal(c.pid.Id)
	return ok
}

// stop asks the instance to stop after the messages in its mailbox.
func (c child) stop(ctx actor.Context, message any) {
	if c.pid == nil {
		return
	}
	c.planned.Store(true)
	c.over.Store(true)
	if message != nil {
		contain.Send(ctx.ActorSystem(), c.pid, message)
		return
	}
	ctx.Poison(c.pid)
}

// stopNow stops the instance after its present message.
func (c child) stopNow(ctx actor.Context) {
	if c.pid != nil {
		c.planned.Store(false)
		c.over.Store(true)
		ctx.Stop(c.pid)
	}
}

// inert replaces an instance that must not run any more.
type inert struct{}

// Receive implements actor.Actor.
func (inert) Receive(actor.Context) {}

// broken replaces an instance that could not be made again. It panics, so that supervision decides.
type broken struct{ why any }

// Receive implements actor.Actor.
func (b broken) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok {
		panic(b.why)
	}
}
