package sim

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Failure is a history that fails.
type Failure struct {
	Seed  uint64   // 0 if it was explored
	Text  string   // of the first broken invariant
	Whole *Case    // as generated from the seed
	Short *Case    // the shortest form found; nil if the history does not fail when replayed
	Story []string // of the short form

	explored bool
}

// Find plays histories like Run, and returns the failure with the smallest seed, shortened, or nil
// if there is none. It is for tests that plant a bug.
func Find(seeds Seeds, history func(*World)) *Failure {
	_, f, _ := run(seeds, history, nil)
	return f
}

// examine replays the history of a failing seed and shortens it.
func examine(seed uint64, whole bool, history func(*World)) *Failure {
	return newWorld(seed, nil).examine(whole, history)
}

// examine replays a failing history and shortens it.
func (w *World) examine(whole bool, history func(*World)) *Failure {
	w.tape = newCase()
	w.play(history)
	f := &Failure{Seed: w.seed, Text: w.failure, Whole: w.tape, explored: w.branch != nil}
	if f.Short = w.tape; !whole {
		f.Short = shorten(w.tape, w.kind, history)
	}
	if f.Short == nil {
		return f
	}
	short := newWorld(0, f.Short)
	short.trace = newTrace(true)
	short.play(history)
	f.Story = short.trace.lines
	f.Short.Comment = []string{short.failure}
	return f
}

// tell returns the failure as a story, with the information needed to reproduce it.
func (f *Failure) tell(test string) string {
	var b strings.Builder
	if f.explored {
		fmt.Fprintf(&b, "explored at %s: %s\n", revision(), f.Text)
	} else {
		fmt.Fprintf(&b, "seed %d at %s: %s\n", f.Seed, revision(), f.Text)
		fmt.Fprintf(&b, "again: %s\n", command(test, f.Seed))
	}
	if f.Short == nil {
		fmt.Fprintln(&b, "Played a second time it does not fail: something in it does not come from the world.")
		return b.String()
	}
	fmt.Fprintf(&b, "shortened from %d acts to %d, from %d lines to %d; save it with -save\n\n%v\n",
		f.Whole.Acts(), f.Short.Acts(), f.Whole.Size(), f.Short.Size(), f.Short)
	const most = 200
	story := f.Story
	if over := len(story) - most; over > 0 {
		fmt.Fprintf(&b, "… %d lines before …\n", over)
		story = story[over:]
	}
	for _, line := range story {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// often is the time between two lines of progress.
const often = 5 * time.Second

// progress periodically reports the state of a campaign.
type progress struct {
	total int
	begin time.Time
	next  time.Time
	tell  func(line string)
}

func (p *progress) told(r Report) {
	if p == nil || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(often)
	r.Real = time.Since(p.begin)
	rest := time.Duration(float64(r.Real) / float64(max(r.Histories, 1)) * float64(
		p.total-r.Histories))
	p.tell(fmt.Sprintf("%d of %d histories, %.0f/s, %.0f steps/s, %.0f × real time, %v to go",
		r.Histories, p.total,
		perSecond(float64(r.Histories), r.Real), perSecond(float64(r.Steps), r.Real),
		perSecond(r.Virtual.Seconds(), r.Real), rest.Round(time.Second)))
}

func perSecond(n float64, d time.Duration) float64 { return n / cmp.Or(d.Seconds(), 1e-9) }
