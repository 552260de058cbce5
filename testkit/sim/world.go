package sim

import (
	"container/heap"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"
)

// World is one history: its time, its randomness, its network, and what has been noted of it. It belongs
// to one goroutine.
type World struct {
	Faults // of messages; change them at any time

	seed    uint64
	rand    *rand.Rand
	now     time.Time
	queue   timeline
	seq     int
	acts    int
	without map[int]bool // acts left out, when a history is being shortened
	hash    [sha256.Size]byte
	story   []string
	keep    bool
	failure string
	cut     map[link]int
	calm    bool
	steps   int
}

// epoch is when every history begins.
var epoch = time.Unix(1_700_000_000, 0)

// newWorld returns the beginning of the history of a seed, without some of its acts.
func newWorld(seed uint64, without map[int]bool, keep bool) *World {
	return &World{
		seed: seed, rand: rand.New(rand.NewPCG(seed, 0x5eed)), now: epoch, without: without, keep: keep, cut: map[link]int{},
	}
}

// Seed returns the seed of the history.
func (w *World) Seed() uint64 { return w.seed }

// Rand is for picking sizes and faults, and for everything that is not part of an act.
func (w *World) Rand() *rand.Rand { return w.rand }

// Now returns the virtual time.
func (w *World) Now() time.Time { return w.now }

// Elapsed returns the virtual time since the beginning.
func (w *World) Elapsed() time.Duration { return w.now.Sub(epoch) }

// Moment returns a random moment before d.
func (w *World) Moment(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

// After runs do when d has passed.
func (w *World) After(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.queue, moment{w.now.Add(max(d, 0)), w.seq, do})
}

// Act runs do when d has passed, as something that is done to the machines from outside: an operation, a
// crash, a partition. Its randomness is its own. A failing history is shortened by leaving acts out, so
// the others must not depend on it.
func (w *World) Act(d time.Duration, what string, do func(r *rand.Rand)) {
	n := w.acts
	w.acts++
	if w.without[n] {
		return
	}
	r := rand.New(rand.NewPCG(w.seed, uint64(n)+1))
	w.After(d, func() {
		w.Note("— %s", what)
		do(r)
	})
}

// Until lets d pass, unless the history has failed.
func (w *World) Until(d time.Duration) {
	end := w.now.Add(d)
	for w.failure == "" && len(w.queue) > 0 && !w.queue[0].at.After(end) {
		m := heap.Pop(&w.queue).(moment)
		w.now = m.at
		w.steps++
		m.do()
	}
	w.now = end
}

// Note adds a line to the trace of the history, which Twice compares, and to its story.
func (w *World) Note(format string, args ...any) {
	line := fmt.Sprintf("%12v  "+format, append([]any{w.Elapsed()}, args...)...)
	w.hash = sha256.Sum256(append(w.hash[:], line...))
	if w.keep {
		w.story = append(w.story, line)
	}
}

// Fail ends the history: an invariant is broken. Only the first call counts.
func (w *World) Fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
		w.Note("✗ %s", w.failure)
	}
}

// Failed reports whether the history has failed.
func (w *World) Failed() bool { return w.failure != "" }

type moment struct {
	at  time.Time
	seq int
	do  func()
}

// timeline is a heap of moments, those of one time in the order in which they were scheduled.
type timeline []moment

func (t timeline) Len() int      { return len(t) }
func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(x any)   { *t = append(*t, x.(moment)) }
func (t timeline) Less(i, j int) bool {
	if !t[i].at.Equal(t[j].at) {
		return t[i].at.Before(t[j].at)
	}
	return t[i].seq < t[j].seq
}

func (t *timeline) Pop() any {
	old := *t
	m := old[len(old)-1]
	old[len(old)-1] = moment{}
	*t = old[:len(old)-1]
	return m
}
