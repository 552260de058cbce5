package testkit

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Clock is the clock of one member, or rather of its machine: it is the same after a restart. At the start of
// the test it shows the time of the bubble and runs as fast; SetRate, Jump and Member.Suspend change that.
//
// The member's session, its membership and the timers of Concord's components go by it. What reads
// package time by itself goes by the time of the bubble, which is true time: give it this clock instead.
// Its reading methods may be called by many goroutines.
type Clock struct {
	c     *Cluster
	index int
	start time.Time // of the bubble

	mu struct {
		sync.Mutex
		at      time.Time     // true time of the last change
		mono    time.Duration // since start, shown then
		rate    float64
		still   bool // suspended
		wall    time.Duration
		booted  time.Duration // wall at the start of the process
		pending map[*alarm]struct{}
		count   uint64
	}
}

// alarm is a function that waits for its time on a clock.
type alarm struct {
	due    time.Duration // on mono
	number uint64
	run    func()
	timer  *time.Timer // nil while the clock stands still
}

var _ coordination.Clock = (*Clock)(nil)

// MaxRate is how many times faster than true time a clock may run; the slowest is 1/MaxRate.
const MaxRate = 1000

func newClock(c *Cluster, index int) *Clock {
	k := &Clock{c: c, index: index, start: c.start}
	k.mu.at, k.mu.rate = time.Now(), 1
	k.mu.mono = k.mu.at.Sub(k.start)
	k.mu.pending = map[*alarm]struct{}{}
	return k
}

// Now is what time.Now would return in a process of this machine: differences are those of the monotonic
// clock, and jumps of the wall clock show only after a restart. See Wall.
func (k *Clock) Now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.start.Add(k.monoLocked() + k.mu.booted)
}

// Wall is what the wall clock shows.
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

// AfterFunc calls f in its own goroutine when d has passed on this clock. stop withdraws it and reports
// whether that was in time.
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

// SetRate lets the clock run so many times as fast as true time from now on: 1.01 is 1 % fast, 0.99 is 1 %
// slow, 1 is right. It fails the test if rate is above MaxRate or below 1/MaxRate.
func (k *Clock) SetRate(rate float64) {
	k.c.t.Helper()
	if !(rate <= MaxRate && rate >= 1.0/MaxRate) { // also for NaN
		k.c.t.Fatalf("rate of clock %d (%v) must be from 1/%d to %d", k.index, rate, MaxRate, MaxRate)
	}
	k.c.note("clock %d: rate %v", k.index, rate)
	k.change(func() { k.mu.rate = rate })
}

// Jump puts the wall clock forward by d, or back. No timer and no difference of two Now sees that.
func (k *Clock) Jump(d time.Duration) {
	k.c.note("clock %d: wall jumps by %v", k.index, d)
	k.change(func() { k.mu.wall += d })
}

func (k *Clock) suspend(still bool) { k.change(func() { k.mu.still = still }) }

// boot starts a process on the machine.
func (k *Clock) boot() { k.change(func() { k.mu.booted, k.mu.still = k.mu.wall, false }) }

// change takes what is shown now as the base of what is shown from now on, and sets all alarms again.
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

// setLocked lets a ring when it is due, never before.
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
	case k.monoLocked() < a.due: // the rate has changed meanwhile, or a nanosecond was lost
		k.setLocked(a)
		k.mu.Unlock()
		return
	}
	delete(k.mu.pending, a)
	k.mu.Unlock()
	a.run()
}
