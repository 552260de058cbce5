package distributeddata

import (
	"sync/atomic"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/hosted"
)

// recall caches the last value read through a key, so that reading the key again in the same
// published state costs nothing. The copies of a key share it.
//
// Invariant: a cached value is the result of load for this key in the state with that number,
// without an error. Its type is one of package crdt. Such values share only data that is never
// written, so every reader gets a copy.
type recall[T any] struct{ last atomic.Pointer[recalled[T]] }

type recalled[T any] struct {
	state uint64 // half.number; a pointer would keep the whole state in memory
	value T
	// renewAt is the result of read that belongs to value.
	renewAt int64
}

// newRecall returns nil for a type of the application: only decoding makes a private copy of such
// values.
func newRecall[T crdt.Value[T]]() *recall[T] {
	if !hosted.Shareable[T]() {
		return nil
	}
	return &recall[T]{}
}

// at returns the cached value if it is that of the state with a number.
func (r *recall[T]) at(number uint64) *recalled[T] {
	if r == nil {
		return nil
	}
	if was := r.last.Load(); was != nil && was.state == number {
		return was
	}
	return nil
}

func (r *recall[T]) keep(number uint64, v T, renewAt int64) {
	if r != nil {
		r.last.Store(&recalled[T]{number, v, renewAt})
	}
}
