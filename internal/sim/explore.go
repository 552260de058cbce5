package sim

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// Bounds limit the histories that Explore plays.
type Bounds struct {
	Deviations int  // from the harmless history, per history; 0: any number
	Histories  int  // the maximum number of histories; 0: all
	Progress   bool // a line every five seconds on standard error
	Save       bool // saves the shortened form of a failure in Folder
	Whole      bool // does not shorten a failure
}

// Explored sums up an exploration.
type Explored struct {
	Histories int
	Within    int  // number of deviations up to which all histories were played
	Points    int  // maximum number of choice points in one history
	States    int  // distinct states passed to Visited
	Complete  bool // all histories within Bounds.Deviations were played, none skipped by Visited
	Steps     int  // total number of events
	Real      time.Duration
}

func (e Explored) String() string {
	what := fmt.Sprintf("with up to %d deviations", e.Within)
	if e.Complete {
		what = "all there are"
	}
	return fmt.Sprintf("%d histories, %s, up to %d points of choice, %d states: %d steps in %v",
		e.Histories, what, e.Points, e.States, e.Steps, e.Real.Round(time.Second/10))
}

// Explore plays every history with a bounded number of deviations from the harmless one, instead of
// histories of random seeds. It enumerates the random choices of World:
//
//   - Number: each value, lo first; if there are more than 64, only lo and hi.
//   - Span: lo and hi.
//   - Chance: false and, if the probability is above zero, true.
//   - A message: it arrives; and, for each of Loss, Duplicate, Jitter and Late that is above zero,
//     it is lost, arrives twice, or takes the whole Jitter or the whole Lateness longer.
//
// The first alternative of each choice is the harmless one; after Calm it is the only one. Rand
// returns the same numbers in every history. Explore shortens and prints a failure like Run. It
// plays on all processors and always reports the same failure, unless the history calls Visited.
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

// FindWithin explores like Explore, and returns the first failure, or nil if there is none. It is
// for tests that plant a bug.
func FindWithin(bounds Bounds, history func(*World)) (*Failure, Explored) {
	e, f := newExplorer(bounds, history).run()
	return f, e
}

// Visited reports whether this exploration has reached a state before, with as many deviations
// left. Otherwise it records the state. A history should return if Visited returns true: its
// continuations have been explored, or will be. state is called only where needed. Its result must
// be comparable and must contain everything that the rest of the history depends on, including how
// much of the history is left. Outside of Explore, Visited returns false.
func (w *World) Visited(state func() any) bool { return w.branch != nil && w.branch.visited(state) }
