package distributeddata

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
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

// GetMessage returns Get as a message. The default level is Local.
func (k Key[T]) GetMessage(opts ...Option) *Get[T] {
	return &Get[T]{Key: k, At: applied(opts).level}
}

// UpdateMessage returns Update as a message.
func (k Key[T]) UpdateMessage(modify func(w *crdt.Writer, v *T) error, opts ...Option) *Update[T] {
	o := applied(opts)
	return &Update[T]{Key: k, Modify: modify, At: o.level, TTL: o.ttl}
}

// DeleteMessage returns Delete as a message.
func (k Key[T]) DeleteMessage(opts ...Option) *Delete[T] {
	o := applied(opts)
	return &Delete[T]{Key: k, At: o.level, Permanently: o.permanently}
}
