package pmap

import "strings"

// Diff calls f, in the order of the keys, for each key that is not certainly the same in a and b:
// either only one map has it (aok or bok is false and the value zero), or same returns false for
// its two values. Diff skips shared nodes without calling same, so same must return true for a
// value and itself. Diff stops when f returns false. The keys alias the maps.
//
// With c elements changed between two versions of one map, Diff takes O(c log n).
func Diff[V any](a, b Map[V], same func(x, y V) bool, f func(k string, av V, aok bool, bv V,
	bok bool) bool) {
	DiffRuns(a, b, runs(same), f)
}

// runs returns a function that returns how many leading values are the same in two slices of equal
// length.
func runs[V any](same func(x, y V) bool) func(a, b []V) int {
	return func(a, b []V) int {
		for i := range a {
			if !same(a[i], b[i]) {
				return i
			}
		}
		return len(a)
	}
}

// DiffRuns is like Diff, but compares the values of a leaf at once: alike returns how many leading
// values are the same in two slices of equal length. For maps built separately it takes half the
// time.
func DiffRuns[V any](a, b Map[V], alike func(a, b []V) int, f func(k string, av V, aok bool, bv V,
	bok bool) bool) {
	if a.Same(b) {
		return
	}
	var x, y cursor[V]
	x.start(a.root)
	y.start(b.root)
	diffFrom(&x, &y, alike, f)
}

// DiffPrefix is like Diff for the keys that begin with p. Changes elsewhere cost nothing.
func DiffPrefix[V any](a, b Map[V], p string, same func(x, y V) bool,
	f func(k string, av V, aok bool, bv V, bok bool) bool) {
	if a.Same(b) {
		return
	}
	var x, y cursor[V]
	x.seek(a.root, p)
	y.seek(b.root, p)
	diffFrom(&x, &y, runs(same), func(k string, av V, aok bool, bv V, bok bool) bool {
		return strings.HasPrefix(k, p) && f(k, av, aok, bv, bok)
	})
}

// diffFrom is DiffRuns from the positions of x and y to the end.
func diffFrom[V any](x, y *cursor[V], alike func(a, b []V) int, f func(k string, av V, aok bool,
	bv V, bok bool) bool) {
	for x.ok && y.ok {
		if x.leaf() == y.leaf() {
			skipShared(x, y)
			continue
		}
		if passSame(x, y, alike) && !diffStep(x, y, f) {
			return
		}
	}
	var zero V
	for ; x.ok; x.next() {
		if k, v := x.elem(); !f(k, v, true, zero, false) {
			return
		}
	}
	for ; y.ok; y.next() {
		if k, v := y.elem(); !f(k, zero, false, v, true) {
			return
		}
	}
}

// passSame skips equal elements, at most to the end of either leaf, and reports whether it stopped
// before that. Diff spends most of its time here: two versions of a leaf differ in an element or
// two.
func passSame[V any](x, y *cursor[V], alike func(a, b []V) int) (differs bool) {
	p, q := &x.stack[x.top], &y.stack[y.top]
	a, b := p.node, q.node
	if n := a.alike(p.i, &b.packed, q.i); n > 0 {
		n = alike(a.vals[p.i:p.i+n], b.vals[q.i:q.i+n])
		p.i, q.i = p.i+n, q.i+n
	}
	differs = p.i < len(a.vals) && q.i < len(b.vals)
	if p.i == len(a.vals) {
		x.leave(x.top)
	}
	if q.i == len(b.vals) {
		y.leave(y.top)
	}
	return differs
}

// diffStep handles the lesser of the elements at x and y, or both if their keys are equal and their
// values differ. It reports whether to continue.
func diffStep[V any](x, y *cursor[V], f func(k string, av V, aok bool, bv V, bok bool) bool) bool {
	var zero V
	k, v := x.elem()
	l, w := y.elem()
	c := strings.Compare(k, l)
	if c <= 0 {
		x.next()
	}
	if c >= 0 {
		y.next()
	}
	switch {
	case c < 0:
		return f(k, v, true, zero, false)
	case c > 0:
		return f(l, zero, false, w, true)
	default:
		return f(k, v, true, w, true)
	}
}

// skipShared moves x and y, which are in one shared leaf, past the largest shared subtree around
// it.
//
// All elements that one cursor has passed are less than the other cursor's element. In a shared
// node both cursors are therefore at the same place, and no element is skipped.
func skipShared[V any](x, y *cursor[V]) {
	i, j := x.top, y.top
	for i > 0 && j > 0 && x.stack[i-1].node == y.stack[j-1].node {
		i--
		j--
	}
	if i > 0 && j > 0 { // skip the shared siblings after it without descending into each
		p, q := &x.stack[i-1], &y.stack[j-1]
		for p.i+1 < len(p.node.kids) && q.i+1 < len(q.node.kids) &&
			p.node.kids[p.i+1] == q.node.kids[q.i+1] {
			p.i++
			q.i++
		}
	}
	x.leave(i)
	y.leave(j)
}

// maxDepth bounds the levels of a tree: with at least minInner children in each inner node except
// the root, a tree of 16 levels has 2*8^14 leaves, about 10^13.
const maxDepth = 16

// cursor is positioned at an element while ok is set, otherwise after the last one. stack[0] is at
// the root, stack[top] at the leaf. It allocates nothing.
type cursor[V any] struct {
	stack [maxDepth]place[V]
	top   int
	ok    bool
}

// place is a position in a node: the child of an inner node or the element of a leaf.
type place[V any] struct {
	node *node[V]
	i    int
}

// start moves the cursor to the first element below root, which may be nil.
func (c *cursor[V]) start(root *node[V]) {
	if root != nil {
		c.ok = true
		c.descend(0, root)
	}
}

// seek moves the cursor to the first element below root that is not less than k.
func (c *cursor[V]) seek(root *node[V], k string) {
	if root == nil {
		return
	}
	n, level := root, 0
	for ; !n.leaf(); level++ {
		i := n.child(k)
		c.stack[level] = place[V]{n, i}
		n = n.kids[i]
	}
	i, _ := n.search(k)
	c.stack[level] = place[V]{n, i}
	c.top, c.ok = level, true
	if i == len(n.vals) {
		c.leave(level)
	}
}

// descend moves to the first element below n, which becomes the node at level.
func (c *cursor[V]) descend(level int, n *node[V]) {
	for ; !n.leaf(); level++ {
		c.stack[level] = place[V]{n, 0}
		n = n.kids[0]
	}
	c.stack[level] = place[V]{n, 0}
	c.top = level
}

// leave moves to the first element after the node at level.
func (c *cursor[V]) leave(level int) {
	for level--; level >= 0; level-- {
		p := &c.stack[level]
		if p.i++; p.i < len(p.node.kids) {
			c.descend(level+1, p.node.kids[p.i])
			return
		}
	}
	c.ok = false
}

// next moves to the next element.
func (c *cursor[V]) next() {
	p := &c.stack[c.top]
	if p.i++; p.i == len(p.node.vals) {
		c.leave(c.top)
	}
}

func (c *cursor[V]) leaf() *node[V] { return c.stack[c.top].node }

func (c *cursor[V]) elem() (string, V) {
	p := &c.stack[c.top]
	return p.node.key(p.i), p.node.vals[p.i]
}
