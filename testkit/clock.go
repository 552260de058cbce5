package testkit

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Clock is the clock of one member's machine; it stays the same across restarts. At the start of
// the test it shows the time of the bubble and runs at the same rate. SetRate, Jump and
// Member.Suspend change that.
//
// The member's session, its membership and the timers of Concord's components use this clock. Code
// that calls package time uses the time of the bubble, which is true time; pass this clock to it
// instead. The methods that read the clock are safe for concurrent use.
type Clock struct {
	c     *Cluster
	index int
	start time.Time // of the bubble

	mu struct {
		sync.Mutex
		at      time.Time     // true time of the last change
		mono    time.Duration // since start, as shown at that time
		rate    float64
		still   bool // suspended
		wall    time.Duration
		booted  time.Duration // wall at the start of the process
		pending map[*alarm]struct{}
		count   uint64
	}
}

// alarm is a function scheduled on a clock.
type alarm struct {
	due    time.Duration // on mono
	number uint64
	run    func()
	timer  *time.Timer // nil while the clock stands still
}

var _ coordination.Clock = (*Clock)(nil)

// maxRate is the maximum rate of a clock relative to true time; the minimum is 1/maxRate.
const maxRate = 1000

func newClock(c *Cluster, index int) *Clock {
	k := &Clock{c: c, index: index, start: c.start}
	k.mu.at, k.mu.rate = time.Now(), 1
	k.mu.mono = k.mu.at.Sub(k.start)
	k.mu.pending = map[*alarm]struct{}{}
	return k
}

// Now returns what time.Now would return in a process on this machine. Differences are those of the
// monotonic clock, and jumps of the wall clock show only after a restart. See Wall.
func (k *Clock) Now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.start.Add(k.monoLocked() + k.mu.booted)
}

// Wall returns the time of the wall clock.
func (k *Clock) Wall() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.start.Add(k.monoLocked() + k.mu.wall).Round(0)
}

// Read implements coordination.Clock.
func (k *Clock) Read() coordination.Reading {
	k.mu.Lock()
	defer k.mu.Unlock()
	mono := k.monoLocked()
	return coordination.Reading{Mono: mono, Boot: mono, Wall: mono + k.mu.wall}
}

// AfterFunc calls f in its own goroutine after d has passed on this clock. stop cancels the call
// and reports whether it did so before f was called.
func (k *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.count++
	a := &alarm{due: k.monoLocked() + max(d, 0), number: k.mu.count, run: f}
	k.mu.pending[a] = struct{}{}
	k.setLocked(a)
	return func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		_, waiting := k.mu.pending[a]
		delete(k.mu.pending, a)
		if a.timer != nil {
			a.timer.Stop()
		}
		return waiting
	}
}

// SetRate sets the rate of the clock relative to true time: 1.01 is 1 % fast, 0.99 is 1 % slow, 1
// is exact. It fails the test if rate is above 1000 or below 1/1000.
func (k *Clock) SetRate(rate float64) {
	k.c.t.Helper()
	if !(rate <= maxRate && rate >= 1.0/maxRate) { // also for NaN
		k.c.t.Fatalf("rate of clock %d (%v) must be from 1/%d to %d", k.index, rate, maxRate,
			maxRate)
	}
	k.c.note("clock %d: rate %v", k.index, rate)
	k.change(func() { k.mu.rate = rate })
}

// Jump moves the wall clock forward by d, or back if d is negative. Timers and differences between
// values of Now are not affected.
func (k *Clock) Jump(d time.Duration) {
	k.c.note("clock %d: wall jumps by %v", k.index, d)
	k.change(func() { k.mu.wall += d })
}

func (k *Clock) suspend(still bool) { k.change(func() { k.mu.still = still }) }

// boot starts a process on the machine.
func (k *Clock) boot() { k.change(func() { k.mu.booted, k.mu.still = k.mu.wall, false }) }

// change rebases the clock on the time it shows now, calls f, and reschedules all alarms.
func (k *Clock) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.mono, k.mu.at = k.monoLocked(), time.Now()
	f()
	waiting := make([]*alarm, 0, len(k.mu.pending))
	for a := range k.mu.pending {
		waiting = append(waiting, a)
	}
	slices.SortFunc(waiting, func(a, b *alarm) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.number, b.number))
	})
	for _, a := range waiting {
		if a.timer != nil {
			a.timer.Stop()
			a.timer = nil
		}
		k.setLocked(a)
	}
}

func (k *Clock) monoLocked() time.Duration {
	passed := time.Since(k.mu.at)
	switch {
	case k.mu.still:
		passed = 0
	case k.mu.rate != 1:
		passed = time.Duration(float64(passed) * k.mu.rate)
	}
	return k.mu.mono + passed
}

// setLocked schedules a to ring when it is due, never earlier.
func (k *Clock) setLocked(a *alarm) {
	if k.mu.still {
		return
	}
	wait := max(0, a.due-k.monoLocked())
	if k.mu.rate != 1 {
		wait = time.Duration(math.Ceil(float64(wait) / k.mu.rate))
	}
	a.timer = time.AfterFunc(wait, func() { k.ring(a) })
}

func (k *Clock) ring(a *alarm) {
	k.mu.Lock()
	_, waiting := k.mu.pending[a]
	switch {
	case !waiting || k.mu.still:
		k.mu.Unlock()
		return
	case k.monoLocked() < a.due: // the rate changed, or rounding lost a nanosecond
		k.setLocked(a)
		k.mu.Unlock()
		return
	}
	delete(k.mu.pending, a)
	k.mu.Unlock()
	a.run()
}
