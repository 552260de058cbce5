package distributeddata

import (
	"runtime"
	"sync/atomic"
	"time"
)

// coreLock is a lock that one goroutine holds at a time. A goroutine that waits for it may give up.
// The actor gets it before all others.
type coreLock struct {
	held    atomic.Bool
	waiting atomic.Int32
	waking  atomic.Bool   // a waiting goroutine has been woken, and has not tried yet
	woken   chan struct{} // has room for one: a waiting goroutine tries again
	first   atomic.Bool   // the actor waits
	given   chan struct{} // has room for one: the lock now belongs to the actor
}

func newCoreLock() coreLock {
	return coreLock{woken: make(chan struct{}, 1), given: make(chan struct{}, 1)}
}

// spins is how often a goroutine tries to get the lock before it sleeps: an update holds the lock
// for a microsecond or two, and to wake a goroutine takes longer. If more than crowded wait
// already, it sleeps at once.
const spins, crowded = 4, 16

// try takes the lock if it is free and the actor does not wait for it.
func (t *coreLock) try() bool { return !t.first.Load() && t.held.CompareAndSwap(false, true) }

// wait takes the lock, unless one of the events ends the wait before.
func (t *coreLock) wait(done, closed <-chan struct{}, late <-chan time.Time) bool {
	for range spins {
		if t.try() {
			return true
		}
		if t.waiting.Load() > crowded {
			break
		}
		runtime.Gosched()
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	for {
		if t.try() {
			return true
		}
		select {
		case <-t.woken:
			t.waking.Store(false)
			continue
		case <-done:
		case <-closed:
		case <-late:
		}
		t.wake() // in case this goroutine was to be the next
		return false
	}
}

// lock takes the lock for the actor.
func (t *coreLock) lock() {
	if t.held.CompareAndSwap(false, true) {
		return
	}
	t.first.Store(true)
	if !t.held.CompareAndSwap(false, true) {
		<-t.given
	}
	t.first.Store(false)
}

// reserve makes the actor the next to have the lock, which the caller holds. It must lock then.
func (t *coreLock) reserve() { t.first.Store(true) }

// unlock gives the lock to the actor if that waits, and otherwise to whoever takes it first.
func (t *coreLock) unlock() {
	if !t.first.Load() {
		t.held.Store(false)
		if !t.first.Load() || !t.held.CompareAndSwap(false, true) {
			t.wake()
			return
		}
	}
	t.given <- struct{}{}
}

// wake lets one of the waiting goroutines try.
func (t *coreLock) wake() {
	if t.waiting.Load() > 0 && t.waking.CompareAndSwap(false, true) {
		t.woken <- struct{}{}
	}
}
