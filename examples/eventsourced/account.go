package main

import (
	"encoding/json"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// Message is a command, an answer or an event, as text. A real program would define its own
// protobuf messages.
//
//	deposit NUMBER AMOUNT     a command, answered with the balance; may be asked again
//	deposited NUMBER AMOUNT   an event
type Message = *wrapperspb.StringValue

func say(format string, args ...any) Message {
	return wrapperspb.String(fmt.Sprintf(format, args...))
}

// account is an entity whose state follows from its events.
type account struct {
	sharding.Entity
	persistence.Mixin
	journal *journal
	state   state
}

type state struct {
	Balance int          `json:"balance"`
	Done    map[int]bool `json:"done"` // numbers of deposits
}

// Receive implements actor.Actor.
func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.replay(ctx)
	case *persistence.RequestSnapshot:
		raw, err := json.Marshal(a.state)
		if err == nil {
			a.PersistSnapshot(wrapperspb.Bytes(raw))
		}
	case *wrapperspb.BytesValue: // a snapshot
		if err := json.Unmarshal(m.Value, &a.state); err != nil {
			panic(err)
		}
	case Message:
		if a.Recovering() {
			a.apply(m)
			return
		}
		a.handle(ctx, m.Value)
	}
}

// replay lets package persistence pass the snapshot and the events after it to Receive. The package
// is made for actors with fixed names, as a middleware of their props. An entity calls the
// middleware itself, and its journal uses the id of the entity, since each incarnation is an actor
// with another name.
func (a *account) replay(ctx actor.Context) {
	nothing := func(actor.ReceiverContext, *actor.MessageEnvelope) {}
	replay := persistence.Using(&fenced{a.journal, a.Entity})(nothing)
	replay(asActor{ctx, a}, &actor.MessageEnvelope{Message: ctx.Message()})
}

// asActor is a context whose actor is the entity.
type asActor struct {
	actor.Context
	entity actor.Actor
}

func (c asActor) Actor() actor.Actor { return c.entity }

func (a *account) handle(ctx actor.Context, command string) {
	var number, amount int
	if _, err := fmt.Sscanf(command, "deposit %d %d", &number, &amount); err != nil {
		return
	}
	sender := ctx.Sender() // PersistReceive may ask for a snapshot, after which ctx has no message
	if !a.state.Done[number] {
		event := say("deposited %d %d", number, amount)
		a.PersistReceive(event) // panics if the journal rejects it: then there is no answer
		a.apply(event)
	}
	ctx.Send(sender, say("%d", a.state.Balance))
}

func (a *account) apply(event Message) {
	var number, amount int
	if _, err := fmt.Sscanf(event.Value, "deposited %d %d", &number, &amount); err != nil {
		panic(fmt.Errorf("event %q: %w", event.Value, err))
	}
	if a.state.Done == nil {
		a.state.Done = map[int]bool{}
	}
	a.state.Done[number] = true
	a.state.Balance += amount
}
