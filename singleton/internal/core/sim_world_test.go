package core_test

import (
	"container/heap"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/concord-go/concord/singleton/internal/core"
)

// world is one seeded history in true time: members with machines and routes, an abstract lease service,
// and a network that loses and delays. It checks at every step that at most one instance is alive.
type world struct {
	rnd    *rand.Rand
	opt    options
	start  time.Time
	now    time.Duration
	queue  events
	seq    int
	nodes  []*node
	faults bool
	cut    map[[2]int]bool // network, by direction
	lease  lease
	alive  map[*node]uint64 // run
	trace  io.Writer        // nil: none
	broken []string         // promises not kept
	starts int
}

// options break a rule, to show that the checks notice.
type options struct {
	nodes         int
	earlyRelease  bool // the lease is free when the instance is told to stop
	blindStart    bool // a start does not check the lease
	overlookGrant bool // a grant that nobody wants is not released
}

const (
	ttl      = 10 * time.Second
	validity = 9 * time.Second // the holder stops believing
	stopBy   = 8 * time.Second // and is told before
)

func newWorld(seed uint64, opt options) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 11)), opt: opt, start: time.Unix(1_000_000, 0), faults: true,
		cut: map[[2]int]bool{}, alive: map[*node]uint64{},
	}
	for i := range opt.nodes {
		n := &node{w: w, i: i}
		w.nodes = append(w.nodes, n)
	}
	for _, n := range w.nodes {
		n.boot()
	}
	return w
}

func (w *world) note(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, format, args...)
	}
}

func (w *world) breaks(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf("%v: ", w.now)+fmt.Sprintf(format, args...))
}

func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.rnd.Int64N(int64(hi-lo)+1))
}

func (w *world) chance(p float64) bool { return w.faults && w.rnd.Float64() < p }

// delay is short, or with faults sometimes seconds.
func (w *world) delay() time.Duration {
	if w.chance(0.05) {
		return w.between(0, 5*time.Second)
	}
	return w.between(time.Millisecond, 30*time.Millisecond)
}

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

// order is all living members by age: those that booted earlier first.
func (w *world) order() []*node {
	out := slices.Clone(w.nodes)
	slices.SortFunc(out, func(a, b *node) int {
		if a.born != b.born {
			return int(a.born - b.born)
		}
		return a.i - b.i
	})
	return out
}

// view lets n see those members; it always sees itself.
func (w *world) view(n *node, see func(*node) bool) {
	v := core.View{Self: n.me()}
	for _, o := range w.order() {
		if o == n || see(o) {
			v.Hosts = append(v.Hosts, o.me())
		}
	}
	n.step(v)
}

// disturb does one random thing.
func (w *world) disturb() {
	n := w.nodes[w.rnd.IntN(len(w.nodes))]
	switch w.rnd.IntN(12) {
	case 0:
		n.crash()
	case 1:
		n.close()
	case 2: // two halves
		side := w.rnd.IntN(1 << len(w.nodes))
		for _, a := range w.nodes {
			for _, b := range w.nodes {
				w.cut[[2]int{a.i, b.i}] = side>>a.i&1 != side>>b.i&1
			}
			w.later(a, func() { w.view(a, func(o *node) bool { return side>>a.i&1 == side>>o.i&1 }) })
		}
	case 3: // whole again
		clear(w.cut)
		for _, a := range w.nodes {
			w.later(a, func() { w.view(a, func(*node) bool { return true }) })
		}
	case 4: // the store is away for one
		w.lease.unreachable(n, w.now+w.between(time.Second, 30*time.Second))
	case 5: // somebody's view is wrong
		see := w.rnd.IntN(1 << len(w.nodes))
		w.view(n, func(o *node) bool { return see>>o.i&1 == 1 })
	case 6:
		n.instanceEnds()
	case 7:
		n.step(core.Tick{})
	case 8:
		n.expelled()
	}
}

func (w *world) later(n *node, f func()) {
	life := n.life
	w.after(w.delay(), func() {
		if n.life == life {
			f()
		}
	})
}

func (w *world) history() {
	for t := time.Duration(0); t < 100*time.Second; t += 500 * time.Millisecond {
		w.after(t, w.disturb)
	}
	w.run(100 * time.Second)
}

// heal ends all faults. Whoever will not host any more is restarted, as processes are.
func (w *world) heal() {
	w.faults = false
	clear(w.cut)
	for _, n := range w.nodes {
		w.lease.unreachable(n, 0)
		if n.final {
			n.crash()
		}
	}
	w.run(w.now + 6*time.Second) // until what is late has arrived
	for _, n := range w.nodes {
		w.view(n, func(*node) bool { return true })
	}
}

// settled checks liveness within the bound: time to live, one poll of a contender, hand-over, back-off.
func (w *world) settled() {
	w.run(w.now + ttl + pollEvery + handOver + maxBackOff + time.Second)
	oldest := w.order()[0]
	if len(w.alive) != 1 || w.alive[oldest] == 0 {
		w.breaks("oldest is %d, %d instances, states %v", oldest.i, len(w.alive), w.states())
		return
	}
	if w.lease.holder != oldest || w.lease.token != oldest.m.Token() {
		w.breaks("lease held by %v with %d, instance has %d", w.lease.holder, w.lease.token, oldest.m.Token())
	}
	for _, n := range w.nodes {
		if h, token, ok := n.r.Host(); !ok || h != oldest.me() || token != oldest.m.Token() {
			w.breaks("route of %d is to %v with %d, %v", n.i, h, token, ok)
		}
	}
}

// quiet checks that closing everybody leaves no lease held.
func (w *world) quiet() {
	for _, n := range w.nodes {
		n.close()
	}
	w.run(w.now + handOver + 5*time.Second)
	if len(w.alive) > 0 || w.lease.holder != nil {
		w.breaks("after closing: %d instances, lease held by %v", len(w.alive), w.lease.holder)
	}
	for _, n := range w.nodes {
		if !n.closed {
			w.breaks("node %d was closed, and is %v", n.i, n.m.State())
		}
	}
}

func (w *world) states() (out []core.State) {
	for _, n := range w.nodes {
		out = append(out, n.m.State())
	}
	return out
}

func (w *world) all() {
	w.history()
	if len(w.broken) == 0 {
		w.heal()
		w.settled()
	}
	if len(w.broken) == 0 {
		w.quiet()
	}
}

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
