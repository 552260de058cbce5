package lane

import (
	"sync"
	"time"
)

// Pace bounds how fast the slots of one member start remembered entities without messages. The
// slots share it; its methods may be called by any goroutine.
type Pace struct {
	each time.Duration // for one entity
	most int           // entities in one turn

	mu   sync.Mutex
	next time.Time // end of the last turn
}

// NewPace returns a pace of some entities a second, at least one and at most a million.
func NewPace(rate int) *Pace {
	return &Pace{each: time.Second / time.Duration(rate), most: max(1, rate/10)}
}

// Turn implements core.Pace. Turns follow one another, in the order in which they are requested.
func (p *Pace) Turn(now time.Time, n int) (at time.Time, count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, count = now, min(n, p.most)
	if p.next.After(at) {
		at = p.next
	}
	p.next = at.Add(time.Duration(count) * p.each)
	return at, count
}
