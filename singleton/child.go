package singleton

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
)

// child is the instance as its manager sees it. The zero value is none.
type child struct {
	run  uint64
	pid  *actor.PID
	over *atomic.Bool // told to stop: a restart that is under way must not bring it back
}

// spawn starts an instance, under the name of its tenure and its number: first, or after a panic what
// produce makes.
func spawn(ctx actor.Context, run uint64, tenure coordination.Tenure, first actor.Actor, produce func(coordination.Tenure) (actor.Actor, any)) child {
	over := new(atomic.Bool)
	props := actor.PropsFromProducer(func() actor.Actor {
		if over.Load() || tenure.Check() != nil {
			return inert{}
		}
		a := first
		if first = nil; a != nil {
			return a
		}
		a, why := produce(tenure)
		if why != nil {
			return broken{why}
		}
		return a
	})
	pid, err := ctx.SpawnNamed(props, fmt.Sprintf("%d-%d", tenure.Token(), run))
	if err != nil {
		panic(fmt.Errorf("singleton: instance %d of tenure %d: %w", run, tenure.Token(), err)) // numbers do not repeat
	}
	return child{run, pid, over}
}

func (c child) is(pid *actor.PID) bool { return c.pid != nil && pid != nil && c.pid.Equal(pid) }

// there tells whether the instance can be reached: then nobody has terminated it, whatever a message
// says. Proto.Actor takes an actor out of its registry before it tells others that it has ended.
func (c child) there(ctx actor.Context) bool {
	_, ok := ctx.ActorSystem().ProcessRegistry.GetLocal(c.pid.Id)
	return ok
}

// stop asks the instance to end after what is in its mailbox.
func (c child) stop(ctx actor.Context, message any) {
	if c.pid == nil {
		return
	}
	c.over.Store(true)
	if message != nil {
		ctx.Send(c.pid, message)
		return
	}
	ctx.Poison(c.pid)
}

// kill stops the instance after the message it is handling.
func (c child) kill(ctx actor.Context) {
	if c.pid != nil {
		c.over.Store(true)
		ctx.Stop(c.pid)
	}
}

// inert stands in for an instance that must not run any more.
type inert struct{}

// Receive implements actor.Actor.
func (inert) Receive(actor.Context) {}

// broken stands in for an instance that could not be made again: its supervision decides.
type broken struct{ why any }

// Receive implements actor.Actor.
func (b broken) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Started); ok {
		panic(b.why)
	}
}
