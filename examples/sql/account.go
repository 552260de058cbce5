package main

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// Message is a line of text. A real program would define its own protobuf messages.
//
//	deposit NUMBER AMOUNT   answered with the balance; may be asked again
type Message = *wrapperspb.StringValue

func say(format string, args ...any) Message {
	return wrapperspb.String(fmt.Sprintf(format, args...))
}

// account is an entity whose state is in the database.
type account struct {
	sharding.Entity
	db *database
}

// Receive implements actor.Actor.
func (a *account) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(Message)
	if !ok {
		return
	}
	var number, amount int
	if _, err := fmt.Sscanf(m.Value, "deposit %d %d", &number, &amount); err != nil {
		return
	}
	// The context of the entity ends with its lease. A transaction that ignores it, as this one
	// does, is stopped by its token.
	balance, err := a.db.deposit(context.Background(), a.ID, a.Token(), number, amount)
	if err != nil { // the client repeats the deposit
		log.Printf("deposit %d to %s: %v", number, a.ID, err)
		return
	}
	ctx.Respond(say("%d", balance))
}
