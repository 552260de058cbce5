package core_test

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// world is one seeded history: true time, a store behind a faulty network, and nodes that want the
// lease. It checks the promises at every step.
type world struct {
	tb    testing.TB
	rnd   *rand.Rand
	opt   options
	now   time.Duration // true time
	queue events
	seq   int

	record  core.Record
	version int
	nodes   []*node
	trace   io.Writer

	faults  bool // loss, long delays, pauses, crashes, jumps
	cut     map[int]time.Duration
	highest uint64
	grants  int
	broken  []string // promises not kept
}

// options of a history; the last ones break a rule, to show that the checks notice.
type options struct {
	nodes      int
	watch      bool
	cfg        core.Config
	drift      float64
	mixed      bool // every other node has a TTL of its own
	fromAnswer bool // validity counted from the answer
	blindStore bool // writes without comparing versions
}

var testConfig = core.Config{
	TTL: 10 * time.Second, Renew: 10 * time.Second / 3, Operation: time.Second, Retry: 2 * time.Second,
	Drain: time.Second, Margin: 300 * time.Millisecond, RateError: 0.01,
}

const mixedTTL = 14 * time.Second

func newWorld(tb testing.TB, seed uint64, opt options) *world {
	w := &world{tb: tb, rnd: rand.New(rand.NewPCG(seed, 7)), opt: opt, faults: true, trace: io.Discard,
		cut: map[int]time.Duration{}}
	for i := range opt.nodes {
		n := &node{w: w, i: i}
		w.nodes = append(w.nodes, n)
		n.boot()
	}
	return w
}

func (w *world) breaks(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf("%v: ", w.now)+fmt.Sprintf(format, args...))
}

// after runs f later, in the order of time and then of asking.
func (w *world) after(d time.Duration, f func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + max(d, 0), w.seq, f})
}

func (w *world) run(until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until && len(w.broken) == 0 {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	w.now = until
}

func (w *world) chance(p float64) bool { return w.faults && w.rnd.Float64() < p }

func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rnd.Int64N(int64(hi-lo)+1))
}

// delay is short, or with faults sometimes longer than the operation timeout.
func (w *world) delay() time.Duration {
	if w.chance(0.05) {
		return w.between(0, 4*time.Second)
	}
	return w.between(time.Millisecond, 50*time.Millisecond)
}

func (w *world) isCut(i int) bool { return w.faults && w.cut[i] > w.now }

// call carries one store operation: either way may be lost, and what is late may still arrive.
func (w *world) call(n *node, do func() core.Event, failed core.Event) {
	life := n.life
	deliver := func(ev core.Event) {
		w.after(w.delay(), func() {
			if n.life == life {
				n.step(ev)
			}
		})
	}
	if w.isCut(n.i) || w.chance(0.05) {
		if w.chance(0.5) {
			deliver(failed)
		}
		return
	}
	w.after(w.delay(), func() {
		ev := do()
		if !w.isCut(n.i) && !w.chance(0.05) {
			deliver(ev)
		}
	})
}

func (w *world) mark() core.Version {
	if w.version == 0 {
		return ""
	}
	return core.Version(fmt.Sprint(w.version))
}

func (w *world) swap(e core.Swap) core.Event {
	if e.Old != w.mark() && !w.opt.blindStore {
		return core.Swapped{Op: e.Op, Status: core.Conflicted}
	}
	if w.chance(0.02) {
		return core.Swapped{Op: e.Op, Status: core.Refused, Err: errTest}
	}
	w.record, w.version = e.Next, w.version+1
	for _, n := range w.nodes {
		if n.watching && !w.isCut(n.i) {
			rec := e.Next
			w.after(w.delay(), func() { n.step(core.Changed{Record: rec}) })
		}
	}
	return core.Swapped{Op: e.Op, Status: core.Written, Version: w.mark()}
}

var errTest = fmt.Errorf("store away")

type event struct {
	at  time.Duration
	seq int
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func hash(run func(io.Writer)) uint64 {
	h := fnv.New64a()
	run(h)
	return h.Sum64()
}
