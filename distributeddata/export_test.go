package distributeddata

import "github.com/concord-go/concord/crdt"

// Reach makes the replica, which starts later, call f in the middle of its steps.
func (r *Replicator) Reach(f func(place string)) { r.reach = f }

// GetMessage returns Get as a message.
func (k Key[T]) GetMessage(at ...Consistency) *Get[T] { return &Get[T]{Key: k, At: ofRead(at)} }

// UpdateMessage returns Update as a message.
func (k Key[T]) UpdateMessage(modify func(w *crdt.Writer, v *T) error, at Consistency,
	opts ...Option) *Update[T] {
	return &Update[T]{Key: k, Modify: modify, At: at, TTL: applied(opts).ttl}
}

// DeleteMessage returns Delete as a message.
func (k Key[T]) DeleteMessage(at Consistency, opts ...Option) *Delete[T] {
	return &Delete[T]{Key: k, At: at, Permanently: applied(opts).permanently}
}
