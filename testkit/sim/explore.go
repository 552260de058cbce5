package sim

import (
	"fmt"
	"os"
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
	Within    int  // deviations: all histories with so many were played
	Points    int  // of choice, the most in one history
	States    int  // told to Visited, all of them different
	Complete  bool // so many as there are, or Bounds.Deviations says; Visited leaves nothing out
	Steps     int  // events, all together
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

// Explore plays every history with a bounded number of deviations from the harmless one, in place
// of histories of random seeds. What World leaves to chance is enumerated:
//
//   - Number: each value, lo first; of more than 64, lo and hi.
//   - Span: lo and hi.
//   - Chance: false and, if the probability is above zero, true.
//   - A message: it arrives; and, for each of Loss, Duplicate, Jitter and Late that is above zero,
//     it is lost, arrives twice, takes the whole Jitter longer, or the whole Lateness.
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

// Visited reports whether this exploration has been in a state before, with as many deviations left;
// otherwise it notes the state. A history for which it is true should end: what can follow has been
// explored, or will be. State is called where it matters. What it returns is comparable, and must say
// all that the rest of the history depends on, how much of it is left included. Outside of Explore,
// Visited is always false.
func (w *World) Visited(state func() any) bool { return w.branch != nil && w.branch.visited(state) }
