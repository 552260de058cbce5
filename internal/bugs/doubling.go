package bugs

import (
	"sync"
	"sync/atomic"
	"time"
)

// doublingPause is the minimum time between two lines of a Doubling. A healing split causes some
// hundred events in a few seconds.
const doublingPause = time.Minute

// Doubling counts events that others may cause at any rate, such as refused messages, and bounds
// their log lines: the first event has one, and each that comes at least a minute after the last
// line and doubles its number. The zero value is ready, and is safe for concurrent use.
type Doubling struct {
	n, next atomic.Uint64 // events; the number of the next line, or a later one

	mu sync.Mutex
	at time.Time // of the last line
}

// Due counts an event at now, and returns its number and whether it is logged.
func (d *Doubling) Due(now time.Time) (n uint64, due bool) {
	n = d.n.Add(1)
	if n < d.next.Load() {
		return n, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n < d.next.Load() || !d.at.IsZero() && now.Sub(d.at) < doublingPause {
		return n, false
	}
	d.at = now
	d.next.Store(2 * n)
	return n, true
}
