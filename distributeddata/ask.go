package distributeddata

import (
	"github.com/asynkron/protoactor-go/actor"
)

// Message is a message that a Replicator accepts from actors: a pointer to Get, Update, Delete,
// Transaction, Subscribe or Unsubscribe.
type Message interface{ request }

// Request sends a message on behalf of the actor of ctx, which receives the response. It never
// blocks. ctx is an actor.Context.
func (r *Replicator) Request(ctx interface {
	Request(to *actor.PID, message any)
}, m Message) {
	ctx.Request(r.pid, m)
}
