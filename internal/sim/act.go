package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// act is an external event applied to the machines.
type act struct {
	at   time.Duration
	text string // verb and arguments
}

// Can registers the function that carries out the acts of a verb.
func (w *World) Can(verb string, do func(Args)) { w.verbs[verb] = do }

// Act schedules an act, such as an operation, a crash or a partition. The verb must be registered
// with Can. Verb and arguments must describe the act completely: it must not depend on any other
// random choice, since a failing history is shortened by omitting other acts, and is saved as the
// list of its acts. All acts must be scheduled before time passes.
//
//	w.Act(w.Moment(time.Minute), "cut", a, b, "for", 3*time.Second)
func (w *World) Act(at time.Duration, verb string, args ...any) {
	switch {
	case w.begun:
		w.Fail("act %q after time has passed", verb)
	case w.given == nil: // a case has its own acts
		w.acts = append(w.acts, act{at,
			strings.TrimSpace(verb + " " + strings.TrimSuffix(fmt.Sprintln(args...), "\n"))})
	}
}

// Rand returns the source of randomness for generating acts. It must not be used once time passes,
// and its values are not part of a saved case. All other random choices of a history come from
// Number, Span and Chance.
func (w *World) Rand() *rand.Rand {
	if w.begun {
		w.Fail("Rand was used after time has passed")
	}
	return w.rand
}

// Moment returns a random time before d, in milliseconds.
func (w *World) Moment(d time.Duration) time.Duration {
	return time.Duration(w.Rand().Int64N(int64(max(d/time.Millisecond, 1)))) * time.Millisecond
}

// begin schedules the acts, in the order of their times.
func (w *World) begin() {
	if w.begun {
		return
	}
	w.begun = true
	if w.given != nil {
		w.acts = w.given.acts
	}
	slices.SortStableFunc(w.acts, func(a, b act) int { return int(a.at - b.at) })
	if w.tape != nil {
		w.tape.acts = slices.Clone(w.acts)
	}
	for _, a := range w.acts {
		w.After(a.at-w.now, func() { w.perform(a) })
	}
}

func (w *World) perform(a act) {
	w.Note("— %s", a.text)
	verb, rest, _ := strings.Cut(a.text, " ")
	do, ok := w.verbs[verb]
	if !ok {
		w.Fail("act %q: nobody can %q", a.text, verb)
		return
	}
	do(Args{w: w, act: a.text, Words: strings.Fields(rest)})
}

// Args are the words of an act after its verb. If a word is missing or invalid, the history fails
// with an error that names it.
type Args struct {
	w     *World
	act   string
	Words []string
}

// Word returns the i-th word, from 0.
func (a Args) Word(i int) string {
	if i >= len(a.Words) {
		a.w.Fail("act %q: word %d is missing", a.act, i+1)
		return ""
	}
	return a.Words[i]
}

// Int returns the i-th word as a number in [0, n).
func (a Args) Int(i, n int) int {
	v, err := strconv.Atoi(a.Word(i))
	if err != nil || v < 0 || v >= n {
		a.w.Fail("act %q: word %d must be a number from 0 to %d", a.act, i+1, n-1)
		return 0
	}
	return v
}

// Span returns the i-th word as a duration.
func (a Args) Span(i int) time.Duration {
	d, err := time.ParseDuration(a.Word(i))
	if err != nil {
		a.w.Fail("act %q: word %d must be a duration", a.act, i+1)
	}
	return d
}

// Fail fails the history because the act makes no sense.
func (a Args) Fail(why string) { a.w.Fail("act %q: %s", a.act, why) }
