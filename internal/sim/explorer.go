package sim

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// explorer plays histories ordered by their number of deviations: first the history without any,
// then those with one, and so on. Histories with one more deviation branch off from histories
// already played.
type explorer struct {
	Bounds
	history func(*World)
	visits  *visits
	begin   time.Time
	tell    func(line string) // nil: no progress output

	mu     sync.Mutex
	told   time.Time
	done   Explored
	level  []played // histories with one deviation less than the current ones
	at     int      // the history of level that others currently branch off from
	point  int      // the point at which they branch off, relative to those left
	value  int      // the last value used at that point
	number int      // number of the last history started in its level
	next   []played
	failed *played // the first failure, in the order in which histories were started
}

// played is a history, with the number of alternatives at the points after its last deviation.
type played struct {
	deviations []deviation
	points     []uint8
	number     int
}

// after returns the first point at which a history with these deviations can have another one.
func after(d []deviation) int {
	if len(d) == 0 {
		return 0
	}
	return int(d[len(d)-1].point) + 1
}

func newExplorer(b Bounds, history func(*World)) *explorer {
	if b.Deviations <= 0 {
		b.Deviations = math.MaxInt
	}
	if b.Histories <= 0 {
		b.Histories = math.MaxInt
	}
	return &explorer{Bounds: b, history: history, visits: newVisits(), begin: time.Now(),
		told: time.Now()}
}

func (x *explorer) run() (Explored, *Failure) {
	x.play(nil, 0)
	for whole := true; x.failed == nil && whole; {
		x.level, x.next, x.at, x.point, x.value, x.number = x.next, nil, 0, 0, 0, 0
		slices.SortFunc(x.level, func(a, b played) int { return a.number - b.number })
		if x.done.Complete = len(x.level) == 0 || x.done.Within == x.Deviations; x.done.Complete {
			break
		}
		x.playLevel()
		if whole = x.at == len(x.level) && x.failed == nil; whole {
			x.done.Within++
		}
	}
	x.done.States, x.done.Real = len(x.visits.first), time.Since(x.begin)
	if x.failed == nil {
		return x.done, nil
	}
	w := newWorld(0, nil)
	w.branch = &branch{deviations: x.failed.deviations, visits: newVisits()}
	return x.done, w.examine(x.Whole, x.history)
}

func (x *explorer) playLevel() {
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				d, number := x.branchOff()
				if d == nil {
					return
				}
				x.play(d, number)
			}
		})
	}
	wg.Wait()
}

// branchOff returns the deviations of the next history. It returns nil if there are none left, a
// history has failed, or the limit is reached.
func (x *explorer) branchOff() ([]deviation, int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.failed == nil && x.done.Histories < x.Histories && x.at < len(x.level) {
		from := &x.level[x.at]
		if x.point == len(from.points) {
			x.at, x.point, x.value = x.at+1, 0, 0
			continue
		}
		if x.value++; x.value >= int(from.points[x.point]) {
			x.point, x.value = x.point+1, 0
			continue
		}
		x.number++
		one := deviation{int32(after(from.deviations) + x.point), int32(x.value)}
		return append(slices.Clip(from.deviations), one), x.number
	}
	return nil, 0
}

func (x *explorer) play(d []deviation, number int) {
	w := newWorld(0, nil)
	w.branch = &branch{deviations: d, visits: x.visits}
	w.play(x.history)
	points := w.branch.points
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done.Histories++
	x.done.Steps += w.steps
	x.done.Points = max(x.done.Points, len(points))
	if from := after(d); from < len(points) && len(d) < x.Deviations {
		x.next = append(x.next, played{d, slices.Clone(points[from:]), number})
	}
	if w.Failed() && (x.failed == nil || number < x.failed.number) {
		x.failed = &played{deviations: d, number: number}
	}
	if x.tell != nil && time.Since(x.told) >= often {
		x.told, x.done.Real = time.Now(), time.Since(x.begin)
		x.tell(x.done.String())
	}
}
