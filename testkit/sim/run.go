package sim

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Seeds says which histories to play.
type Seeds struct {
	First uint64
	Count int
}

// Report sums up what was played.
type Report struct {
	Histories, Failed int
	Steps             int           // events, all together
	Virtual           time.Duration // time that passed in the histories, all together
	Real              time.Duration
}

func (r Report) String() string {
	return fmt.Sprintf("%d histories, %d failed: %d steps, %.0f a second, %.0f times real time",
		r.Histories, r.Failed, r.Steps, float64(r.Steps)/r.Real.Seconds(), r.Virtual.Seconds()/r.Real.Seconds())
}

// Run plays the histories of seeds on all processors. The first that fails is shortened and told, and the
// test fails.
func Run(t testing.TB, seeds Seeds, history func(*World)) (r Report) {
	t.Helper()
	var next atomic.Uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				if n >= uint64(seeds.Count) {
					return
				}
				w := play(seeds.First+n, nil, false, history)
				mu.Lock()
				r.Histories++
				r.Steps += w.steps
				r.Virtual += w.Elapsed()
				if w.Failed() {
					r.Failed++
					if r.Failed == 1 {
						t.Error(tell(w, history))
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	r.Real = time.Since(begin)
	t.Log(r)
	return r
}

// Twice plays each seed two times, and fails the test where that gives two histories.
func Twice(t testing.TB, seeds Seeds, history func(*World)) {
	t.Helper()
	for n := range uint64(seeds.Count) {
		a, b := play(seeds.First+n, nil, false, history), play(seeds.First+n, nil, false, history)
		if a.hash != b.hash {
			t.Errorf("seed %d is not one history: something in it does not come from the seed", a.seed)
			return
		}
	}
}

func play(seed uint64, without map[int]bool, keep bool, history func(*World)) *World {
	w := newWorld(seed, without, keep)
	history(w)
	return w
}

// tell returns the shortest failing form of a history as a story.
func tell(w *World, history func(*World)) string {
	without := shorten(w, history)
	short := play(w.seed, without, true, history)
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d%s: %s\n", w.seed, commit(), w.failure)
	fmt.Fprintf(&b, "shortened from %d acts to %d: %s\n", w.acts, w.acts-len(without), short.failure)
	const most = 200
	if over := len(short.story) - most; over > 0 {
		fmt.Fprintf(&b, "… %d lines before …\n", over)
		short.story = short.story[over:]
	}
	for _, line := range short.story {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// shorten returns acts without which the history of w fails still: it tries to leave out halves, then
// quarters, and so on down to single acts.
func shorten(w *World, history func(*World)) map[int]bool {
	const budget = 300
	without := map[int]bool{}
	runs := 0
	for size := (w.acts + 1) / 2; size >= 1 && runs < budget; size /= 2 {
		for from := 0; from < w.acts && runs < budget; from += size {
			try := map[int]bool{}
			for n := range without {
				try[n] = true
			}
			for n := from; n < min(from+size, w.acts); n++ {
				try[n] = true
			}
			if len(try) == len(without) {
				continue
			}
			runs++
			if play(w.seed, try, false, history).Failed() {
				without = try
			}
		}
	}
	return without
}

// commit names the revision the test was built from, where that is known.
func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return " at " + s.Value
			}
		}
	}
	return ""
}
