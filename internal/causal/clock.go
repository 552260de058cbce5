package causal

import "sync/atomic"

// StampBits is the number of counter bits in a hybrid timestamp, below its 48 bits of milliseconds.
const StampBits = 16

const maxMillis = 1<<(64-StampBits) - 1

// Clock is a hybrid logical clock. Its stamps are close to wall time, and each is larger than all
// before it, whatever the wall clock does. It is safe for concurrent use. The zero value is ready.
//
// Literature: Kulkarni et al., "Logical Physical Clocks" (2014).
type Clock struct{ last atomic.Uint64 }

// Next returns the stamp of an event at wall time ms.
func (c *Clock) Next(ms uint64) uint64 {
	for {
		last := c.last.Load()
		next := max(min(ms, maxMillis)<<StampBits, last+1)
		if last+1 == 0 {
			return last
		}
		if c.last.CompareAndSwap(last, next) {
			return next
		}
	}
}
