package coordination

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

var (
	errProducerGone = errors.New("coordination: the producer of a gated actor exited its goroutine")
	errNoActor      = errors.New("coordination: the producer of a gated actor returned nil")
)

// worker is the user's actor under one tenure. It releases the lease when it has stopped, for
// whatever reason: a loss, a stop or a restart of the gate, or because it stopped itself.
type worker struct {
	actor.Actor
	grant   *Grant
	release func()
}

// Receive implements actor.Actor.
func (w *worker) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		if w.grant.Check() != nil { // lost while produce ran: the gate stops this actor
			w.Actor = actor.ReceiveFunc(func(actor.Context) {})
		}
	case *actor.Stopped:
		defer w.release()
	}
	w.Actor.Receive(ctx)
}

// workerProps returns props whose first actor is made.actor. After a failure the supervisor makes
// another one with produce.
func workerProps(made *gateMade, produce func(Tenure) actor.Actor, release func()) *actor.Props {
	first := made.actor
	return actor.PropsFromProducer(func() actor.Actor {
		a := first
		first = nil
		if a == nil {
			a = produceAgain(produce, made.grant)
		}
		return &worker{a, made.grant, release}
	})
}

// produceAgain calls produce, and panics for the supervisor if produce makes no actor.
func produceAgain(produce func(Tenure) actor.Actor, t Tenure) (a actor.Actor) {
	made := make(chan error, 1)
	produceAside(produce, t, func(b actor.Actor, err error) {
		a = b
		made <- err
	})
	if err := <-made; err != nil {
		panic(err)
	}
	return a
}

// produceAside calls the user's producer in a new goroutine. It calls done once, with an actor or
// an error, also after a panic or runtime.Goexit.
func produceAside(produce func(Tenure) actor.Actor, t Tenure, done func(actor.Actor, error)) {
	go func() {
		a, err := actor.Actor(nil), errProducerGone
		defer func() {
			if p := recover(); p != nil {
				a, err = nil, fmt.Errorf(
					"coordination: the producer of a gated actor panicked: %v\n%s", p,
					debug.Stack())
			}
			done(a, err)
		}()
		if a, err = produce(t), nil; a == nil {
			err = errNoActor
		}
	}()
}
