package distributeddata

import (
	"sync/atomic"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/hosted"
)

// valueCache caches the last value read through a key, so that reading the key again in the same
// published state costs nothing. The copies of a key share it.
//
// Invariant: a cached value is the result of load for this key in the state with that number,
// without an error. Its type is one of package crdt. Such values share only data that is never
// written, so every reader gets a copy.
type valueCache[T any] struct {
	last atomic.Pointer[cachedValue[T]]
}

type cachedValue[T any] struct {
	state uint64 // domainView.number; a pointer would keep the whole state in memory
	value T
	// renewAt is the result of read that belongs to value.
	renewAt int64
}

// newValueCache returns nil for a type of the application: only decoding makes a private copy of
// such values.
func newValueCache[T crdt.Value[T]]() *valueCache[T] {
	if !hosted.Shareable[T]() {
		return nil
	}
	return &valueCache[T]{}
}

// at returns the cached value if it is that of the state with a number.
func (r *valueCache[T]) at(number uint64) *cachedValue[T] {
	if r == nil {
		return nil
	}
	if was := r.last.Load(); was != nil && was.state == number {
		return was
	}
	return nil
}

func (r *valueCache[T]) keep(number uint64, v T, renewAt int64) {
	if r != nil {
		r.last.Store(&cachedValue[T]{number, v, renewAt})
	}
}
