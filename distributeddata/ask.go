package distributeddata

import (
	"context"
	"iter"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"

	"github.com/concord-go/concord/crdt"
)

// Message is a message that a Replicator accepts from actors: a pointer to Get, Update, Delete,
// Transaction, Subscribe, Unsubscribe, GetKeys, GetReplicaCount, FlushChanges or ForgetMember.
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

// SubscribeMessage returns Subscribe as a message, for an actor.
func (k Key[T]) SubscribeMessage(to *actor.PID) *Subscribe[T] {
	return &Subscribe[T]{Key: k, Subscriber: to}
}

// UnsubscribeMessage returns the message that ends that subscription.
func (k Key[T]) UnsubscribeMessage(to *actor.PID) *Unsubscribe[T] {
	return &Unsubscribe[T]{Key: k, Subscriber: to}
}

// SubscribeMessage returns Subscribe as a message, for an actor.
func (p Prefix[T]) SubscribeMessage(to *actor.PID) *Subscribe[T] {
	return &Subscribe[T]{Key: p, Subscriber: to}
}

// UnsubscribeMessage returns the message that ends that subscription.
func (p Prefix[T]) UnsubscribeMessage(to *actor.PID) *Unsubscribe[T] {
	return &Unsubscribe[T]{Key: p, Subscriber: to}
}

// Then makes the asker receive f's result instead of the response; a nil result is not sent. It
// returns m.
func (m *Get[T]) Then(f func(v T, err error) any) *Get[T] {
	m.Adapt = func(r *GetResponse[T]) any { return f(r.value, r.err) }
	return m
}

// Then makes the asker receive f's result instead of the response; a nil result is not sent. It
// returns m.
func (m *Update[T]) Then(f func(v T, err error) any) *Update[T] {
	m.Adapt = func(r *UpdateResponse[T]) any { return f(r.value, r.err) }
	return m
}

// Then makes the asker receive f's result instead of the response; a nil result is not sent. It
// returns m.
func (m *Delete[T]) Then(f func(err error) any) *Delete[T] {
	m.Adapt = func(r *DeleteResponse[T]) any { return f(r.err) }
	return m
}

// Then makes the asker receive f's result instead of the response; a nil result is not sent. It
// returns m.
func (m *Transaction) Then(f func(err error) any) *Transaction {
	m.Adapt = func(r *TransactionResponse) any { return f(r.err) }
	return m
}

// Then makes the subscriber receive f's result instead of the change; a nil result is not sent. It
// returns m.
func (m *Subscribe[T]) Then(f func(*Changed[T]) any) *Subscribe[T] {
	m.Adapt = f
	return m
}

// Traced makes the operation a child of the recorded span in ctx, if there is one and the operation
// may wait for other members or for the disk: it sets Span. The span of the operation begins when
// the replicator takes the message and ends with the response. Its attributes are those of direct
// calls, with concord.ddata.counted, the number of members that the level is counted over. An actor
// keeps the context of its own work, since messages of Proto.Actor carry none. Traced returns m.
func (m *Get[T]) Traced(ctx context.Context) *Get[T] {
	m.Span = trace.SpanFromContext(ctx)
	return m
}

// Traced makes the operation a child of the recorded span in ctx; see Get.Traced. It returns m.
func (m *Update[T]) Traced(ctx context.Context) *Update[T] {
	m.Span = trace.SpanFromContext(ctx)
	return m
}

// Traced makes the operation a child of the recorded span in ctx; see Get.Traced. It returns m.
func (m *Delete[T]) Traced(ctx context.Context) *Delete[T] {
	m.Span = trace.SpanFromContext(ctx)
	return m
}

// Traced makes the operation a child of the recorded span in ctx; see Get.Traced. It returns m.
func (m *Transaction) Traced(ctx context.Context) *Transaction {
	m.Span = trace.SpanFromContext(ctx)
	return m
}

// GetKeys asks for the names of the existing entries, and is answered with *KeysResponse.
type GetKeys struct {
	Prefix string // of the names; empty: all
	Echo   any
	Adapt  func(*KeysResponse) any
}

// KeysResponse answers GetKeys.
type KeysResponse struct {
	answer
	keys iter.Seq[string]
}

// Result returns the names in order, as of one instant. They are looked up during the iteration.
func (r *KeysResponse) Result() (iter.Seq[string], error) { return r.keys, r.err }

func (m *GetKeys) run(a *replica, respond func(any)) {
	for _, d := range a.domains {
		d.settle() // makes earlier messages visible
	}
	adapted(a.l.r, &KeysResponse{answer{"", m.Echo, nil}, a.l.published.Load().names(m.Prefix)},
		m.Adapt, respond)
}

func (m *GetKeys) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, &KeysResponse{answer{"", m.Echo, err}, func(func(string) bool) {}}, m.Adapt, respond)
}

// GetReplicaCount asks for the number of replicas, and is answered with *ReplicaCountResponse.
type GetReplicaCount struct {
	Echo  any
	Adapt func(*ReplicaCountResponse) any
}

// ReplicaCountResponse answers GetReplicaCount.
type ReplicaCountResponse struct {
	answer
	Seen int // replicas in view, including this one
	// Counted is the number of replicas that majorities are counted over, seen or not. It describes
	// the volatile keys; Status describes both kinds.
	Counted int
	Ready   bool // this replica counts
}

// Result returns Counted.
func (r *ReplicaCountResponse) Result() (int, error) { return r.Counted, r.err }

func (m *GetReplicaCount) run(a *replica, respond func(any)) {
	p := a.l.published.Load()
	adapted(a.l.r, &ReplicaCountResponse{answer{"", m.Echo, nil}, p.members, p.main().roll.Counted,
		p.allReady()}, m.Adapt, respond)
}

func (m *GetReplicaCount) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, &ReplicaCountResponse{answer: answer{"", m.Echo, err}}, m.Adapt, respond)
}
