package distributeddata

import (
	"sync/atomic"

	"github.com/concord-go/concord/crdt"
)

// recall keeps the last value that a key was read as, so that reading it again in the same published state
// costs nothing. It is shared by the copies of the key.
//
// Invariant: a kept value is what load returned for this key in the state of that number, without an
// error. Its type is one of package crdt, whose values share what is never written, so every reader is
// given a copy.
type recall[T any] struct{ last atomic.Pointer[recalled[T]] }

type recalled[T any] struct {
	state uint64 // half.number; the state itself would be kept in memory by it
	value T
	// renewAt is what read returned with it.
	renewAt int64
}

// newRecall returns nil for a type of the application: only decoding makes a private copy of its values.
func newRecall[T crdt.Value[T]]() *recall[T] {
	if !crdt.Shareable[T]() {
		return nil
	}
	return &recall[T]{}
}

// in returns the value in a published state if that was read last.
func (r *recall[T]) in(p *published) *recalled[T] {
	if r == nil {
		return nil
	}
	was := r.last.Load()
	if was != nil && (was.state == p.number || p.durable != nil && was.state == p.durable.number) {
		return was
	}
	return nil
}

func (r *recall[T]) keep(h *half, v T, renewAt int64) {
	if r != nil {
		r.last.Store(&recalled[T]{h.number, v, renewAt})
	}
}
