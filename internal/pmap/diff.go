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
	if a.Same(b) {
		return
	}
	var x, y cursor[V]
	x.start(a.root)
	y.start(b.root)
	diffFrom(&x, &y, same, f)
}

// DiffPrefix is Diff of the keys that begin with p. What changed elsewhere costs nothing.
func DiffPrefix[V any](a, b Map[V], p string, same func(x, y V) bool, f func(k string, av V, aok bool, bv V, bok bool) bool) {
	if a.Same(b) {
		return
	}
	var x, y cursor[V]
	x.seek(a.root, p)
	y.seek(b.root, p)
	diffFrom(&x, &y, same, func(k string, av V, aok bool, bv V, bok bool) bool {
		return strings.HasPrefix(k, p) && f(k, av, aok, bv, bok)
	})
}

// diffFrom is Diff of what x and y stand on and of all behind it.
func diffFrom[V any](x, y *cursor[V], same func(x, y V) bool, f func(k string, av V, aok bool, bv V, bok bool) bool) {
	for x.ok && y.ok {
		if x.leaf() == y.leaf() {
			skipShared(x, y)
			continue
		}
		if passSame(x, y, same) && !diffStep(x, y, same, f) {
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
func passSame[V any](x, y *cursor[V], same func(x, y V) bool) (differs bool) {
	p, q := &x.stack[x.top], &y.stack[y.top]
	a, b := p.node, q.node
	i, j := p.i, q.i
	for alike := a.alike(i, &b.packed, j); alike > 0 && same(a.vals[i], b.vals[j]); alike-- {
		i++
		j++
	}
	if p.i = i; i == len(a.vals) {
		x.leave(x.top)
	}
	if q.i = j; j == len(b.vals) {
		y.leave(y.top)
	}
	return i < len(a.vals) && j < len(b.vals)
}

// diffStep compares the elements that x and y stand on, passes the lesser or
// both, and reports whether to go on.
func diffStep[V any](x, y *cursor[V], same func(x, y V) bool, f func(k string, av V, aok bool, bv V, bok bool) bool) bool {
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
		return same(v, w) || f(k, v, true, w, true)
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
