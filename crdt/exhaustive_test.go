package crdt_test

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

var exhaustive = flag.Int("exhaustive", 0,
	"steps of the small model; 0: as many as fit the other tests")

// The small model has three replicas and two elements (or keys), and runs every schedule of a few
// steps. A step adds, removes or merges; a step that changes nothing ends its branch. The
// specification is a bit mask of known steps for each replica.
//
// Two schedules with the same events, the same causal order, and the same events known to each
// replica must produce the same bytes. The search then continues from only one of them.

type small[T crdt.Value[T]] struct {
	add    func(w *crdt.Writer, v *T, elem int, amount int64)
	remove func(w *crdt.Writer, v *T, elem int) int
	count  bool // the value counts amounts; otherwise elements are present or absent
	value  func(v *T, elem int) int64
	// nil: adds win, by count or presence
	rule func(steps []smallStep, seen uint64, elem int) int64

	steps   []smallStep
	visited map[[16]byte]visit
	checked int
}

// visit records the result of a state.
type visit struct {
	left  int // number of steps explored from the state
	bytes [8]byte
}

type smallStep struct {
	add     bool
	elem    int
	before  uint64
	replica int
	n       uint64 // the number of the event at its replica
}

// amount returns a number unique to the event, such that sums of different events differ.
func (s smallStep) amount() int64 { return 1 << (s.replica*10 + int(s.n)) }

type world[T any] struct {
	values [3]T
	seen   [3]uint64
	events [3]uint64
}

// want is the specification: the adds of elem that are in seen and not before a remove in seen.
func (m *small[T]) want(seen uint64, elem int) (sum int64) {
	if m.rule != nil {
		return m.rule(m.steps, seen, elem)
	}
	for i, a := range m.steps {
		if seen>>i&1 == 0 || !a.add || a.elem != elem || m.removed(i, seen) {
			continue
		}
		if !m.count {
			return 1
		}
		sum += a.amount()
	}
	return sum
}

func (m *small[T]) removed(i int, seen uint64) bool {
	for j, r := range m.steps {
		if seen>>j&1 == 1 && !r.add && r.elem == m.steps[i].elem && r.before>>i&1 == 1 {
			return true
		}
	}
	return false
}

func (m *small[T]) check(t *testing.T, v *T, seen uint64) {
	m.checked++
	for elem := range 2 {
		if got, want := m.value(v, elem), m.want(seen, elem); got != want {
			t.Fatalf("element %d is %d, specification %d, of %v with %b seen", elem, got, want,
				m.steps, seen)
		}
	}
}

func (m *small[T]) explore(t *testing.T, w world[T], depth int) {
	if depth == 0 {
		m.end(t, w)
		return
	}
	if m.known(t, w, depth) {
		return
	}
	for i := range 3 {
		for elem := range 2 {
			if len(m.steps) == 0 && (i > 0 || elem > 0) {
				return // the first step, by symmetry
			}
			m.change(t, w, depth, i, elem, true)
			m.change(t, w, depth, i, elem, false)
		}
		for j := range 3 {
			if w.seen[j]&^w.seen[i] == 0 {
				continue
			}
			next := w
			next.values[i], next.seen[i] = w.values[i].Merge(w.values[j]), w.seen[i]|w.seen[j]
			m.check(t, &next.values[i], next.seen[i])
			m.explore(t, next, depth-1)
		}
	}
}

// known reports whether a schedule with as many remaining steps reached this state before, and
// checks that it produced the same bytes.
func (m *small[T]) known(t *testing.T, w world[T], left int) bool {
	var b []byte
	for i := range w.values {
		enc := encode(t, w.values[i])
		b = append(binary.AppendUvarint(b, uint64(len(enc))), enc...)
	}
	sum := sha256.Sum256(b)
	key, bytes := m.key(w), [8]byte(sum[:])
	was, ok := m.visited[key]
	if ok && was.bytes != bytes {
		t.Fatalf("%v with %b seen has other bytes after another schedule", m.steps, w.seen)
	}
	if ok && was.left >= left {
		return true
	}
	m.visited[key] = visit{left, bytes}
	return false
}

// key identifies the events by replica and number, independent of the order of the steps, and what
// each has seen.
func (m *small[T]) key(w world[T]) [16]byte {
	order := slices.Clone(m.steps)
	slices.SortFunc(order, func(a, b smallStep) int {
		return (a.replica-b.replica)<<16 + int(a.n) - int(b.n)
	})
	var b []byte
	for _, s := range order {
		op := byte(s.replica<<2 | s.elem<<1)
		if s.add {
			op |= 1
		}
		b = append(append(b, 0xff, op), m.cut(s.before)...)
	}
	for _, seen := range w.seen {
		b = append(append(b, 0xfe), m.cut(seen)...)
	}
	sum := sha256.Sum256(b)
	return [16]byte(sum[:])
}

// cut returns a set of steps as event numbers per replica: a step is known with all its
// predecessors.
func (m *small[T]) cut(set uint64) []byte {
	var n [3]byte
	for i, s := range m.steps {
		if set>>i&1 == 1 {
			n[s.replica]++
		}
	}
	return n[:]
}

func (m *small[T]) change(t *testing.T, w world[T], depth, i, elem int, add bool) {
	n := len(m.steps)
	w.events[i]++
	dot := causal.Dot{Replica: causal.Replica(i + 1), N: w.events[i]}
	wr, end := hosted.Writer[*crdt.Writer](dot, 1)
	defer end()
	s := smallStep{add, elem, w.seen[i], i, w.events[i]}
	if add {
		m.add(wr, &w.values[i], elem, s.amount())
	} else if m.remove(wr, &w.values[i], elem) == 0 {
		return
	}
	require.NoError(t, wr.Err())
	m.steps = append(m.steps, s)
	w.seen[i] |= 1 << n
	m.check(t, &w.values[i], w.seen[i])
	m.explore(t, w, depth-1)
	m.steps = m.steps[:n]
}

// end joins all replicas in two different orders.
func (m *small[T]) end(t *testing.T, w world[T]) {
	all := w.seen[0] | w.seen[1] | w.seen[2]
	x := w.values[0].Merge(w.values[1].Merge(w.values[2]))
	y := w.values[2].Merge(w.values[0]).Merge(w.values[1])
	m.check(t, &x, all)
	m.check(t, &y, all)
}

func (m *small[T]) run(t *testing.T, depth int) {
	m.visited = map[[16]byte]visit{}
	m.explore(t, world[T]{}, depth)
	t.Logf("%d steps: %d states, %d values checked", depth, len(m.visited), m.checked)
	require.Greater(t, m.checked, 10_000)
}

func exhaustiveDepth() int {
	if *exhaustive > 0 {
		return *exhaustive
	}
	return exhaustiveSteps
}

func TestExhaustive_ORSet(t *testing.T) {
	m := &small[crdt.ORSet[int]]{
		add:    func(w *crdt.Writer, v *crdt.ORSet[int], elem int, _ int64) { v.Add(w, elem) },
		remove: func(w *crdt.Writer, v *crdt.ORSet[int], elem int) int { return v.Remove(w, elem) },
		value: func(v *crdt.ORSet[int], elem int) int64 {
			if v.Contains(elem) {
				return 1
			}
			return 0
		},
	}
	m.run(t, exhaustiveDepth())
}

func TestExhaustive_CounterInMap(t *testing.T) {
	type m = crdt.ORMap[int, crdt.PNCounter]
	s := &small[m]{
		count: true,
		add: func(w *crdt.Writer, v *m, key int, n int64) {
			v.Update(w, key, func(c *crdt.PNCounter) { c.Add(w, n) })
		},
		remove: func(w *crdt.Writer, v *m, key int) int { return v.Remove(w, key) },
		value: func(v *m, key int) int64 {
			c, _ := v.Get(key)
			return c.Value()
		},
	}
	s.run(t, exhaustiveDepth())
}
