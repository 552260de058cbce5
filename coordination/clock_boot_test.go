package coordination

import (
	"sync"
	"testing"
	"time"
)

// hardware is a set of clocks that a test moves.
type hardware struct {
	Reading
	asked int
	step  time.Duration // how far the other clocks move during a kernel call
}

func (h *hardware) clock() *bootClock {
	return &bootClock{
		kernel: func() time.Duration {
			h.asked++
			h.run(h.step)
			return h.Boot
		},
		again: func() Reading { return Reading{Mono: h.Mono, Wall: h.Wall} },
	}
}

func (h *hardware) run(d time.Duration) {
	h.Mono, h.Boot, h.Wall = h.Mono+d, h.Boot+d, h.Wall+d
}
func (h *hardware) suspend(d time.Duration) { h.Boot, h.Wall = h.Boot+d, h.Wall+d }

func (h *hardware) reads(t *testing.T, b *bootClock, asked int) {
	t.Helper()
	want := h.Boot
	if got := b.at(Reading{Mono: h.Mono, Wall: h.Wall}); got < want || got > want+h.step {
		t.Errorf("boot clock %v, want %v to %v", got, want, want+h.step)
	}
	if h.asked != asked {
		t.Errorf("the kernel was asked %d times, want %d", h.asked, asked)
	}
}

func TestBootClock_AsksTheKernelIfTheClocksMoved(t *testing.T) {
	h := &hardware{Reading: Reading{Mono: time.Hour, Boot: 3 * time.Hour}}
	b := h.clock()
	h.reads(t, b, 1)
	for range 5 {
		h.run(time.Hour)
		h.reads(t, b, 1)
	}
	h.suspend(time.Second)
	h.reads(t, b, 2)
	h.reads(t, b, 2)
	h.Wall -= time.Minute // the wall clock is set
	h.reads(t, b, 3)
	h.reads(t, b, 3)
	h.Wall += time.Minute
	h.suspend(time.Minute)
	h.Wall -= 2*time.Minute - 10*time.Microsecond
	h.reads(t, b, 4)
	h.suspend(3 * time.Microsecond)
	h.reads(t, b, 5)
}

// TestBootClock_IsNotCalibratedBySlowReadings checks that readings of different moments are not
// kept.
func TestBootClock_IsNotCalibratedBySlowReadings(t *testing.T) {
	h := &hardware{step: 30 * time.Microsecond}
	b := h.clock()
	h.reads(t, b, 1)
	h.reads(t, b, 2)
	h.step = time.Microsecond
	h.reads(t, b, 3)
	h.run(time.Second)
	h.reads(t, b, 3)
}

// TestBootClock_ManyMayReadWhileItIsCalibrated checks that no reader sees half of a calibration:
// the two numbers of each calibration are equal.
func TestBootClock_ManyMayReadWhileItIsCalibrated(t *testing.T) {
	var c calibration
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 10_000 {
				d := time.Duration(i*10_000 + j)
				c.store(d, d)
				if set, suspended, ok := c.load(); ok && set != suspended {
					t.Errorf("half of %v and half of %v", set, suspended)
					return
				}
			}
		})
	}
	all.Wait()
	if _, _, ok := c.load(); !ok {
		t.Error("nothing is known")
	}
}

func TestBootClock_DoesNotAllocate(t *testing.T) {
	h := &hardware{}
	b := h.clock()
	if n := testing.AllocsPerRun(1000, func() {
		h.Wall += time.Second // the wall clock is set before each reading
		b.at(Reading{Mono: h.Mono, Wall: h.Wall})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if h.asked < 1000 {
		t.Errorf("the kernel was asked %d times", h.asked)
	}
}

// TestBootClock_ShowsWhatTheKernelDoes reads the clocks of this machine.
func TestBootClock_ShowsWhatTheKernelDoes(t *testing.T) {
	c := newClock()
	if c.boot == nil {
		t.Skip("this system has no boot clock")
	}
	for range 1000 {
		before, r, after := bootTime(), c.Read(), bootTime()
		if r.Boot < before-together || r.Boot > after+together {
			t.Fatalf("read %v between %v and %v", r.Boot, before, after)
		}
	}
}
