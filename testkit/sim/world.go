package sim

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// World is one history: its time, what is left to chance, its network, and what has been noted of it. It
// belongs to one goroutine.
type World struct {
	Faults // of messages; change them at any time

	seed   uint64
	given  *Case   // what is played again; nil: all comes from the seed, or the branch
	branch *branch // the explored history; nil: none is explored
	tape   *Case   // what is recorded; nil: nothing
	rand   *rand.Rand

	now   time.Duration
	queue timeline
	seq   int
	steps int
	begun bool // time has passed
	again bool // see Again

	verbs map[string]func(Args)
	acts  []act
	picks map[string]*moments // of each name
	links map[link]*path
	calm  bool

	always  []invariant
	observe []func(from, to int, msg any)

	trace   *trace // nil: nobody looks
	failure string
	kind    string // of the failure: what shortening must keep
}

type invariant struct {
	name  string
	check func() error
}

// epoch is when every history begins.
var epoch = time.Unix(1_700_000_000, 0)

// mostSteps ends a history in which something happens again and again without time passing.
const mostSteps = 5_000_000

// newWorld returns the beginning of the history of a seed, or of a case.
func newWorld(seed uint64, given *Case) *World {
	return &World{
		seed: seed, given: given, rand: rand.New(rand.NewPCG(seed, 0x5eed)),
		verbs: map[string]func(Args){}, picks: map[string]*moments{}, links: map[link]*path{},
	}
}

// play lets a history happen. A panic in it is a failure like any other.
func (w *World) play(history func(*World)) *World {
	func() {
		defer func() {
			if p := recover(); p != nil {
				w.fail("panic", fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		history(w)
	}()
	return w
}

// Seed returns the seed of the history; 0 for a saved case.
func (w *World) Seed() uint64 { return w.seed }

// Now returns the virtual time.
func (w *World) Now() time.Time { return epoch.Add(w.now) }

// Elapsed returns the virtual time since the beginning.
func (w *World) Elapsed() time.Duration { return w.now }

// After runs do when d has passed.
func (w *World) After(d time.Duration, do func()) {
	w.seq++
	w.queue.push(moment{w.now + max(d, 0), w.seq, do})
}

// Until lets d pass, unless the history has failed.
func (w *World) Until(d time.Duration) {
	w.begin()
	end := w.now + d
	for w.failure == "" && len(w.queue) > 0 && w.queue[0].at <= end {
		m := w.queue.pop()
		w.now = m.at
		if w.steps++; w.steps > mostSteps {
			w.Fail("more than %d steps: time does not pass", mostSteps)
		}
		m.do()
		for i := range w.always {
			if err := w.always[i].check(); err != nil {
				w.fail(w.always[i].name, w.always[i].name+": "+err.Error())
			}
		}
	}
	w.now = end
}

// Eventually lets time pass until ok, and fails the history if that takes longer than within. It is how
// the second half of a history ends: after Calm, everything must come right in bounded time.
func (w *World) Eventually(within time.Duration, what string, ok func() bool) {
	begin, pause := w.now, max(within/100, time.Millisecond)
	for w.failure == "" && !ok() {
		if w.now-begin >= within {
			w.fail(what, fmt.Sprintf("not %s within %v", what, within))
			return
		}
		w.Until(pause)
	}
}

// Always makes check an invariant: it is called after every step, and its error fails the history. Name
// says what must hold.
func (w *World) Always(name string, check func() error) {
	w.always = append(w.always, invariant{name, check})
}

// Observe calls see with every message that is sent, whatever becomes of it.
func (w *World) Observe(see func(from, to int, msg any)) { w.observe = append(w.observe, see) }

// Note adds a line to the trace of the history, which Seeds.Twice compares, and to its story.
func (w *World) Note(format string, args ...any) {
	if w.trace != nil {
		w.trace.note(w.now, format, args)
	}
}

// Fail ends the history: an invariant is broken. Only the first call counts. A failing history is
// shortened as long as it ends with a call of the same format.
func (w *World) Fail(format string, args ...any) {
	if w.failure == "" {
		w.fail(format, fmt.Sprintf(format, args...))
	}
}

func (w *World) fail(kind, text string) {
	if w.failure == "" {
		w.failure, w.kind = text, kind
		w.Note("✗ %s", text)
	}
}

// Failed reports whether the history has failed.
func (w *World) Failed() bool { return w.failure != "" }
