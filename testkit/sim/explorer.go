package sim

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"time"
)

// explorer plays histories by their number of deviations: first the one with none, then those with
// one, and so on. Histories with one more branch off from those that have been played.
type explorer struct {
	Bounds
	history func(*World)
	visits  *visits
	begin   time.Time
	tell    func(line string) // nil: nobody looks

	mu     sync.Mutex
	told   time.Time
	done   Explored
	level  []played // histories with one deviation less than those that are played now
	at     int      // the one of them that others branch off from
	point  int      // the point at which they do, of those that are left
	value  int      // and the last value that was given there
	number int      // of the history that was begun last, in its level
	next   []played
	failed *played // the first, in the order in which they were begun
}

// played is a history, with the alternatives of the points behind its last deviation.
type played struct {
	deviations []deviation
	points     []uint8
	number     int
}

// after returns the first point at which a history with such deviations can have another one.
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
	return &explorer{Bounds: b, history: history, visits: newVisits(), begin: time.Now(), told: time.Now()}
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

// branchOff returns the deviations of the next history; nil if there are no more, or one has
// failed, or there have been enough.
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
