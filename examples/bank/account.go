package main

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// Message is a line of text sent to accounts. A real program would define its own protobuf
// messages.
//
//	transfer ID TO AMOUNT   answered "done ID" when the money has arrived; may be asked again
//	credit ID AMOUNT        from the account that pays; answered "credited ID"
//	note SENDER NUMBER      written down
type Message = *wrapperspb.StringValue

func say(format string, args ...any) Message {
	return wrapperspb.String(fmt.Sprintf(format, args...))
}

// account is an entity. Its state is the row in the ledger, plus the actors that wait for an
// answer.
type account struct {
	sharding.Entity
	bank    *sharding.Region[Message]
	ledger  *ledger
	waiting map[string]*actor.PID // by id of a transfer
}

// Receive implements actor.Actor.
func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		// Pay what an earlier incarnation, here or at another member, debited and may not have
		// paid.
		for _, p := range a.ledger.owed(a.ID) {
			a.pay(ctx, p)
		}
	case Message:
		a.handle(ctx, m.Value)
	}
}

func (a *account) handle(ctx actor.Context, line string) {
	var id, to, sender string
	var amount, number int
	switch {
	case scan(line, "transfer %s %s %d", &id, &to, &amount):
		a.transfer(ctx, payment{id, to, amount})
	case scan(line, "credit %s %d", &id, &amount):
		err := a.ledger.change(a.ID, a.Token(), func(r *row) {
			if !r.credited[id] { // else the payer got no answer
				r.credited[id] = true
				r.balance += amount
			}
		})
		if err == nil {
			ctx.Respond(say("credited %s", id))
		}
	case scan(line, "credited %s", &id):
		a.paid(ctx, id)
	case scan(line, "note %s %d", &sender, &number):
		a.ledger.note(a.ID, sender, number)
	}
}

func scan(line, format string, into ...any) bool {
	n, err := fmt.Sscanf(line, format, into...)
	return err == nil && n == len(into)
}

// transfer debits the account and records the debt, both in one write.
func (a *account) transfer(ctx actor.Context, p payment) {
	arrived := false
	err := a.ledger.change(a.ID, a.Token(), func(r *row) {
		if !r.debited[p.id] {
			r.debited[p.id] = true
			r.balance -= p.amount
			r.owed[p.id] = p
		}
		_, owed := r.owed[p.id]
		arrived = !owed
	})
	switch {
	case err != nil: // another tenure has begun: the sender will retry there
	case arrived:
		ctx.Respond(say("done %s", p.id))
	default:
		a.waiting[p.id] = ctx.Sender()
		a.pay(ctx, p)
	}
}

func (a *account) pay(ctx actor.Context, p payment) {
	// An error is like a lost message: the next incarnation, or the next retry, pays.
	_ = a.bank.Ref(p.to).Request(ctx, say("credit %s %d", p.id, p.amount))
}

func (a *account) paid(ctx actor.Context, id string) {
	if err := a.ledger.change(a.ID, a.Token(), func(r *row) { delete(r.owed, id) }); err != nil {
		return
	}
	if to := a.waiting[id]; to != nil {
		delete(a.waiting, id)
		ctx.Send(to, say("done %s", id))
	}
}
