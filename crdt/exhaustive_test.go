package crdt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// The small model: three replicas and two elements (or keys) under every schedule of a few steps.
// A step adds, removes or merges; steps that change nothing end their branch. The specification is a
// bit mask of known steps for each.

type small[T crdt.Value[T]] struct {
	add    func(w *crdt.Writer, v *T, elem int, amount int64)
	remove func(w *crdt.Writer, v *T, elem int) int
	count  bool // the value counts amounts; else it is there or not
	value  func(v *T, elem int) int64
	rule   func(steps []smallStep, seen uint64, elem int) int64 // nil: adds win, by count or presence

	replicas [3]*crdt.Replica
	steps    []smallStep
	checked  int
}

type smallStep struct {
	add    bool
	elem   int
	before uint64
}

type world[T any] struct {
	values [3]T
	seen   [3]uint64
}

// want is the specification: what adds of elem are in seen and before no remove in seen.
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
		sum += 1 << i
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
			t.Fatalf("element %d is %d, specification %d, of %v with %b seen", elem, got, want, m.steps, seen)
		}
	}
}

func (m *small[T]) explore(t *testing.T, w world[T], depth int) {
	if depth == 0 {
		m.end(t, w)
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

func (m *small[T]) change(t *testing.T, w world[T], depth, i, elem int, add bool) {
	n := len(m.steps)
	wr := m.replicas[i].Writer()
	if add {
		m.add(wr, &w.values[i], elem, 1<<n)
	} else if m.remove(wr, &w.values[i], elem) == 0 {
		return
	}
	m.steps = append(m.steps, smallStep{add, elem, w.seen[i]})
	w.seen[i] |= 1 << n
	m.check(t, &w.values[i], w.seen[i])
	m.explore(t, w, depth-1)
	m.steps = m.steps[:n]
}

// end joins all replicas in two orders.
func (m *small[T]) end(t *testing.T, w world[T]) {
	all := w.seen[0] | w.seen[1] | w.seen[2]
	x := w.values[0].Merge(w.values[1].Merge(w.values[2]))
	y := w.values[2].Merge(w.values[0]).Merge(w.values[1])
	m.check(t, &x, all)
	m.check(t, &y, all)
}

func (m *small[T]) run(t *testing.T, depth int) {
	for i := range m.replicas {
		m.replicas[i] = crdt.NewReplica(crdt.ReplicaID(i + 1))
	}
	m.explore(t, world[T]{}, depth)
	t.Logf("%d states checked", m.checked)
	require.Greater(t, m.checked, 10_000)
}

func exhaustiveDepth() int {
	if testing.Short() || raceEnabled {
		return 5
	}
	return 6
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
