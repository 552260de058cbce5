package pmap

import "strings"

// Diff calls f in the order of the keys for each key that is not certainly the
// same in a and b: where only one map has it (aok or bok is false and the value
// zero), or where same says no to its two values. Nodes that a and b share are
// passed over without calling same, so same must hold for a value and itself.
// Diff ends early when f returns false. The keys alias the maps.
//
// With c elements changed between two versions of one map it takes O(c log n).
func Diff[V any](a, b Map[V], same func(x, y V) bool, f func(k string, av V, aok bool, bv V, bok bool) bool) {
	DiffRuns(a, b, runs(same), f)
}

// runs returns how many values lead that are the same in both slices, which are equally long.
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

// DiffRuns is Diff with the values of a leaf compared at once: alike returns how many values lead that are
// the same in both slices, which are equally long. For maps that were built apart it takes half the time.
func DiffRuns[V any](a, b Map[V], alike func(a, b []V) int, f func(k string, av V, aok bool, bv V, bok bool) bool) {
	if a.Same(b) {
		return
	}
	var x, y cursor[V]
	x.start(a.root)
	y.start(b.root)
	diffFrom(&x, &y, alike, f)
}

// DiffPrefix is Diff of the keys that begin with p. What changed elsewhere costs nothing.
func DiffPrefix[V any](a, b Map[V], p string, same func(x, y V) bool, f func(k string, av V, aok bool, bv V, bok bool) bool) {
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

// diffFrom is DiffRuns of what x and y stand on and of all behind it.
func diffFrom[V any](x, y *cursor[V], alike func(a, b []V) int, f func(k string, av V, aok bool, bv V, bok bool) bool) {
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

// passSame passes the elements that are the same, to the end of either leaf at most, and reports whether
// it stopped before that. It is what Diff spends its time on: two versions of a leaf differ in an element
// or two.
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

// diffStep passes the lesser of the elements that x and y stand on, or both; their keys differ, or else
// their values. It reports whether to go on.
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

// skipShared takes x and y, which stand in one leaf they share, past the largest
// subtree around it that they share.
//
// Whatever one cursor has passed is less than what the other stands on, so in a
// node they share both are at the same place: nothing in it is left out.
func skipShared[V any](x, y *cursor[V]) {
	i, j := x.top, y.top
	for i > 0 && j > 0 && x.stack[i-1].node == y.stack[j-1].node {
		i--
		j--
	}
	if i > 0 && j > 0 { // pass the shared siblings behind it without going down into each
		p, q := &x.stack[i-1], &y.stack[j-1]
		for p.i+1 < len(p.node.kids) && q.i+1 < len(q.node.kids) && p.node.kids[p.i+1] == q.node.kids[q.i+1] {
			p.i++
			q.i++
		}
	}
	x.leave(i)
	y.leave(j)
}

// maxDepth bounds the levels of a tree: with at least minInner children in each
// inner node but the root, a tree of 16 levels has 2*8^14 leaves, some 10^13.
const maxDepth = 16

// cursor stands on an element while ok, or behind the last. stack[0] is at the root,
// stack[top] at the leaf. It allocates nothing.
type cursor[V any] struct {
	stack [maxDepth]place[V]
	top   int
	ok    bool
}

// place is the child of an inner node or the element of a leaf that a cursor is at.
type place[V any] struct {
	node *node[V]
	i    int
}

// start puts the cursor on the first element below root, which may be nil.
func (c *cursor[V]) start(root *node[V]) {
	if root != nil {
		c.ok = true
		c.descend(0, root)
	}
}

// seek puts the cursor on the first element below root that is not less than k.
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

// descend goes to the first element below n, which becomes the node at level.
func (c *cursor[V]) descend(level int, n *node[V]) {
	for ; !n.leaf(); level++ {
		c.stack[level] = place[V]{n, 0}
		n = n.kids[0]
	}
	c.stack[level] = place[V]{n, 0}
	c.top = level
}

// leave goes to the first element behind the node at level.
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

// next goes to the next element.
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
