package sim

import (
	"fmt"
	"hash/maphash"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// Bounds say which histories Explore plays.
type Bounds struct {
	Deviations int  // from the harmless history, in one history; 0: any number
	Histories  int  // play no more than so many; 0: all
	Progress   bool // a line every five seconds on standard error
	Save       bool // the shortened form of a failure, in Folder
	Whole      bool // do not shorten a failure
}

// Explored sums up an exploration.
type Explored struct {
	Histories int
	Points    int  // of choice, the most in one history
	States    int  // told to Visited, all of them different
	Complete  bool // all histories within the bounds were played, but for those that Visited ended
	Steps     int  // events, all together
	Real      time.Duration
}

func (e Explored) String() string {
	whole := "all"
	if !e.Complete {
		whole = "not all"
	}
	return fmt.Sprintf("%d histories, %s there are, up to %d points of choice, %d states: %d steps in %v", e.Histories, whole,
		e.Points, e.States, e.Steps, e.Real.Round(time.Second/10))
}

// Explore plays every history with a bounded number of deviations from the harmless one, in place
// of histories of random seeds. What World leaves to chance is enumerated:
//
//   - Number: each value, lo first; of more than 64, lo and hi.
//   - Span: lo and hi.
//   - Chance: false and, if the probability is above zero, true.
//   - A message: it arrives; and, for each of Loss, Duplicate, Jitter and Late that is above zero, it is lost,
//     arrives twice, takes the whole Jitter longer, or the whole Lateness.
//
// The first alternative of each is the harmless one; after Calm there is no other. Rand gives every
// history the same numbers. A failure is shortened and told as by Run. Explore plays on all
// processors; the failure it reports is the same each time, unless the history calls Visited.
func Explore(t testing.TB, bounds Bounds, history func(*World)) Explored {
	t.Helper()
	x := newExplorer(bounds, history)
	if bounds.Progress {
		x.tell = func(line string) { fmt.Fprintf(os.Stderr, "%s: %s\n", t.Name(), line) }
	}
	e, f := x.run()
	t.Log(e)
	if f != nil {
		f.report(t, bounds.Save)
	}
	return e
}

// FindWithin explores like Explore, and returns the first failure; nil if there is none. It is for
// tests that plant a bug.
func FindWithin(bounds Bounds, history func(*World)) (*Failure, Explored) {
	e, f := newExplorer(bounds, history).run()
	return f, e
}

// Visited reports whether this exploration has been in a state before, with as many deviations
// left; otherwise it notes the state. A history for which it is true should end: what can follow
// has been explored, or will be. State is comparable, and must say all that the rest of the history
// depends on, how much of it is left included. Outside of Explore, Visited is always false.
func (w *World) Visited(state any) bool { return w.branch != nil && w.branch.visited(state) }

// visits are the states that histories have been in.
type visits struct {
	sync.Mutex
	seed maphash.Seed
	most int            // deviations of one history
	left map[uint64]int // deviations that were left there, by hash
}

// explorer plays histories depth first. Each job is the part of the tree below one deviation from
// the harmless history.
type explorer struct {
	Bounds
	history func(*World)
	visits  visits
	tell    func(line string)

	mu     sync.Mutex
	done   Explored
	told   time.Time
	begin  time.Time
	over   bool // no more jobs: a history has failed, or there have been enough
	capped bool
	failed map[int][]deviation // by job
}

func newExplorer(b Bounds, history func(*World)) *explorer {
	if b.Deviations <= 0 {
		b.Deviations = math.MaxInt32
	}
	return &explorer{
		Bounds: b, history: history, failed: map[int][]deviation{}, begin: time.Now(), told: time.Now(),
		visits: visits{seed: maphash.MakeSeed(), most: b.Deviations, left: map[uint64]int{}},
	}
}

func (x *explorer) run() (Explored, *Failure) {
	root, failed := x.play(nil)
	if failed {
		x.failed[0] = nil
	} else {
		x.jobs(branches(nil, root))
	}
	x.done.States, x.done.Real = len(x.visits.left), time.Since(x.begin)
	x.done.Complete = !x.capped && len(x.failed) == 0
	if len(x.failed) == 0 {
		return x.done, nil
	}
	first := math.MaxInt
	for job := range x.failed {
		first = min(first, job)
	}
	return x.done, x.examine(x.failed[first])
}

// jobs plays what is below each of the branches on all processors. When one fails, those before it
// go on to their ends.
func (x *explorer) jobs(all [][]deviation) {
	work := make(chan int)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for job := range work {
				x.below(job, all[job])
			}
		})
	}
	for job := range all {
		if x.enough() {
			break
		}
		work <- job
	}
	close(work)
	wg.Wait()
}

// below plays a history and all that branch off from it later than it did itself. It ends with the
// first that fails.
func (x *explorer) below(job int, deviations []deviation) {
	stack := [][]deviation{deviations}
	for len(stack) > 0 && !x.stops(job) {
		d := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		points, failed := x.play(d)
		if failed {
			x.mu.Lock()
			x.failed[job], x.over = d, true
			x.mu.Unlock()
			return
		}
		if len(d) < x.Deviations {
			next := branches(d, points)
			slices.Reverse(next)
			stack = append(stack, next...)
		}
	}
}

// branches returns the histories with one deviation more, which is the last.
func branches(d []deviation, points []int) (next [][]deviation) {
	from := 0
	if len(d) > 0 {
		from = d[len(d)-1].point + 1
	}
	for at := from; at < len(points); at++ {
		for v := 1; v < points[at]; v++ {
			next = append(next, append(slices.Clip(d), deviation{at, v}))
		}
	}
	return next
}

func (x *explorer) play(d []deviation) (points []int, failed bool) {
	w := newWorld(0, nil)
	w.branch = &branch{deviations: d, visits: &x.visits}
	w.play(x.history)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done.Histories++
	x.done.Steps += w.steps
	x.done.Points = max(x.done.Points, len(w.branch.points))
	if x.tell != nil && time.Since(x.told) >= often {
		x.told = time.Now()
		x.done.Real = time.Since(x.begin)
		x.tell(x.done.String())
	}
	return w.branch.points, w.Failed()
}

// enough reports whether no more jobs are to be begun.
func (x *explorer) enough() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.Histories > 0 && x.done.Histories >= x.Histories {
		x.over, x.capped = true, true
	}
	return x.over
}

// stops reports whether a job ends before its histories do: there have been enough, or an earlier
// job failed.
func (x *explorer) stops(job int) bool {
	x.enough()
	x.mu.Lock()
	defer x.mu.Unlock()
	for failed := range x.failed {
		if failed < job {
			return true
		}
	}
	return x.capped
}

// examine plays a failing history again, and shortens it.
func (x *explorer) examine(d []deviation) *Failure {
	w := newWorld(0, nil)
	w.branch = &branch{deviations: d, visits: &visits{seed: x.visits.seed, left: map[uint64]int{}, most: x.Deviations}}
	return w.examine(x.Whole, x.history)
}
