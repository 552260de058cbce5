package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Seeds selects the histories to play.
type Seeds struct {
	First    uint64
	Count    int
	Twice    bool // plays each seed twice and requires equal traces
	Progress bool // prints progress, speed and remaining time every five seconds on standard error
	Save     bool // saves the shortened form of a failure in Folder
	Whole    bool // does not shorten a failure: it is enough to know that there is one

	usual int
}

// AtMost returns the seeds, but n of them unless -seeds asks for another number than usual.
func (s Seeds) AtMost(n int) Seeds {
	if s.Count == s.usual {
		s.Count = min(s.Count, n)
	}
	return s
}

// Flags registers -seed, -seeds, -progress, -save and -whole with the test binary, and returns the
// seeds that they will select. Call it once per package, in a variable declaration.
func Flags(usual int) *Seeds {
	s := &Seeds{usual: usual}
	flag.Uint64Var(&s.First, "seed", 1, "first seed of the simulated histories")
	flag.IntVar(&s.Count, "seeds", usual, "number of simulated histories")
	flag.BoolVar(&s.Progress, "progress", false, "tell how far the simulated histories are")
	flag.BoolVar(&s.Save, "save", false, "save a failing history in "+Folder)
	flag.BoolVar(&s.Whole, "whole", false, "do not shorten a failing history")
	return s
}

// Report summarizes the histories played.
type Report struct {
	Histories, Failed int
	Differ            int           // seeds with differing traces; only known with Twice
	Steps             int           // total number of events
	Virtual           time.Duration // total virtual time of all histories
	Real              time.Duration
}

func (r Report) String() string {
	return fmt.Sprintf("%d histories, %d failed, %d differ: %d steps in %v, %.0f a second, %.0f times real time", r.Histories,
		r.Failed, r.Differ, r.Steps, r.Real.Round(time.Second/10), perSecond(float64(r.Steps),
			r.Real), perSecond(r.Virtual.Seconds(), r.Real))
}

// Run plays the histories of seeds on all processors until one fails. It then shortens and prints
// that history and fails the test.
func Run(t testing.TB, seeds Seeds, history func(*World)) Report {
	t.Helper()
	var p *progress
	if seeds.Progress {
		p = &progress{total: seeds.Count, begin: time.Now(), next: time.Now().Add(often),
			tell: func(line string) {
				fmt.Fprintf(os.Stderr, "%s: %s\n", t.Name(), line)
			}}
	}
	r, f, differ := run(seeds, history, p)
	t.Log(r)
	if differ != nil {
		t.Error(differs(differ, history))
	}
	if f == nil {
		return r
	}
	f.report(t, seeds.Save)
	return r
}

// report fails the test with a failure, and saves it if save is set.
func (f *Failure) report(t testing.TB, save bool) {
	t.Helper()
	t.Error(f.tell(t.Name()))
	if !save || f.Short == nil {
		return
	}
	path, err := f.save(Folder, t.Name())
	if err != nil {
		t.Errorf("not saved: %v", err)
	} else {
		t.Logf("saved as %s", path)
	}
}

// run plays seeds until one fails. It also plays all smaller seeds, so it always returns the same
// failure.
func run(seeds Seeds, history func(*World), p *progress) (r Report, f *Failure, differ []uint64) {
	var next atomic.Uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed []uint64
	begin := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				if n >= uint64(seeds.Count) {
					return
				}
				w, equal := playSeed(seeds.First+n, seeds.Twice, history)
				mu.Lock()
				r.add(w, seeds.Twice)
				p.told(r)
				if !equal {
					differ = append(differ, w.seed)
				}
				if w.Failed() {
					failed = append(failed, w.seed)
					next.Store(uint64(seeds.Count))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	r.Real, r.Failed, r.Differ = time.Since(begin), len(failed), len(differ)
	if len(failed) > 0 {
		f = examine(slices.Min(failed), seeds.Whole, history)
	}
	return r, f, differ
}

// playSeed plays a seed once, or, if twice is set and it does not fail, twice.
func playSeed(seed uint64, twice bool, history func(*World)) (w *World, equal bool) {
	if !twice {
		return newWorld(seed, nil).play(history), true
	}
	w = traced(seed, false, history)
	if w.Failed() {
		return w, true
	}
	second := newWorld(seed, nil)
	second.trace, second.again = newTrace(false), true
	return w, w.trace.sum() == second.play(history).trace.sum()
}

// Again reports whether the seed has just been played and only its trace matters now. Checks that
// draw no random numbers and add no notes may then be skipped.
func (w *World) Again() bool { return w.again }

func (r *Report) add(w *World, twice bool) {
	times := 1
	if twice {
		times = 2
	}
	r.Histories++
	r.Steps += times * w.steps
	r.Virtual += time.Duration(times) * w.now
}

// differs returns a seed whose second trace differed, and where the traces diverge.
func differs(seeds []uint64, history func(*World)) string {
	seed := slices.Min(seeds)
	a, b := traced(seed, true, history), traced(seed, true, history)
	return fmt.Sprintf("seed %d is not one history: something in it does not come from the world; two plays part in\n%s",
		seed, difference(a.trace.lines, b.trace.lines))
}

func traced(seed uint64, keep bool, history func(*World)) *World {
	w := newWorld(seed, nil)
	w.trace = newTrace(keep)
	return w.play(history)
}

// difference returns the first differing lines.
func difference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		x, y := "the end", "the end"
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x + "\n" + y
		}
	}
	return "lines that are equal when they are kept"
}
