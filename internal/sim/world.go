package sim

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"
)

// World is one history: its time, its random choices, its network, and its notes. It is not safe
// for concurrent use.
type World struct {
	Faults // of messages; change them at any time

	seed   uint64
	given  *Case   // the case being replayed; nil: choices come from the seed or the branch
	branch *branch // the explored history; nil outside an exploration
	tape   *Case   // the recording; nil: nothing is recorded
	rand   *rand.Rand

	now   time.Duration
	queue timeline
	seq   int
	steps int
	begun bool // time has passed
	again bool // see Again

	verbs map[string]func(Args)
	acts  []act
	picks map[string]*moments // by name
	links map[link]*path
	calm  bool

	always  []invariant
	observe []func(from, to int, msg any)

	trace   *trace // nil: notes are not kept
	failure string
	kind    string // of the failure: shortening must preserve it
}

type invariant struct {
	name  string
	check func() error
}

// epoch is the start time of every history.
var epoch = time.Unix(1_700_000_000, 0)

// mostSteps bounds a history in which events repeat without time passing.
const mostSteps = 5_000_000

// newWorld returns the start of the history of a seed or a case.
func newWorld(seed uint64, given *Case) *World {
	return &World{
		seed: seed, given: given, rand: rand.New(rand.NewPCG(seed, 0x5eed)),
		verbs: map[string]func(Args){}, picks: map[string]*moments{}, links: map[link]*path{},
	}
}

// play runs a history. A panic in it is a failure like any other.
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

// Until advances the time by d, unless the history fails.
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

// Eventually lets time pass until ok returns true, and fails the history if that takes longer than
// within. Histories end this way: after Calm, everything must recover in bounded time.
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

// Always registers an invariant: check is called after every step, and its error fails the history.
// name states the invariant.
func (w *World) Always(name string, check func() error) {
	w.always = append(w.always, invariant{name, check})
}

// Observe calls see for every message when it is sent, whatever its fate.
func (w *World) Observe(see func(from, to int, msg any)) { w.observe = append(w.observe, see) }

// Note adds a line to the trace of the history, which Seeds.Twice compares, and to its story.
func (w *World) Note(format string, args ...any) {
	if w.trace != nil {
		w.trace.note(w.now, format, args)
	}
}

// Fail ends the history because an invariant is broken. Only the first call counts. Shortening
// keeps a history only if it ends with a call with the same format.
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
