package pmap

const (
	maxLeaf      = 16   // elements in a leaf
	maxLeafBytes = 1024 // key bytes in a leaf of more than crowd elements
	crowd        = 2    // elements that a leaf may hold, however long their keys are
	maxInner     = 32   // children of an inner node

	// A node with fewer elements or children, other than the root, is joined with a neighbour. A
	// leaf stays small only if the byte limit prevents joining it.
	minLeaf  = maxLeaf / 4
	minInner = maxInner / 4

	// maxKey bounds the length of a key, so that the offsets of a node's keys fit into 32 bits,
	// even in two nodes just joined.
	maxKey = 1 << 26
)

// node is a leaf (branch == nil) or an inner node (vals == nil). It is immutable once it is part of
// a Map.
//
// Invariants of a leaf: len(vals) == len(), and fits(0, len()).
// Invariants of an inner node: len(kids) == len()+1; n is the sum over kids;
// each key of kids[i] < key(i) <= each key of kids[i+1]; 2 <= len(kids) <= maxInner,
// and minInner <= len(kids) but for the root; all leaves are at the same depth.
type node[V any] struct {
	packed         // a leaf's keys, or an inner node's separators
	vals       []V // leaf: vals[i] belongs to key(i)
	*branch[V]     // inner: in the same allocation as the node, see room.go
}

// branch holds the fields that only inner nodes need.
type branch[V any] struct {
	kids []*node[V]
	n    int // elements below the node
}

// sibling is a node to be inserted to the right of another. sep separates the two and may be a
// substring of a node, so it must be copied if retained.
type sibling[V any] struct {
	sep  string
	node *node[V]
}

func (n *node[V]) leaf() bool { return n.branch == nil }

// total returns the number of elements in and below n.
func (n *node[V]) total() int {
	if n.leaf() {
		return len(n.vals)
	}
	return n.n
}

// small reports whether n should be joined with a neighbour.
func (n *node[V]) small() bool {
	if n.leaf() {
		return len(n.vals) < minLeaf
	}
	return len(n.kids) < minInner
}

// child returns the index of the child whose range k falls into.
func (n *node[V]) child(k string) int {
	i, eq := n.search(k)
	if eq {
		i++
	}
	return i
}

// first returns the least key below n.
func (n *node[V]) first() string {
	for !n.leaf() {
		n = n.kids[0]
	}
	return n.key(0)
}

// last returns the greatest key below n.
func (n *node[V]) last() string {
	for !n.leaf() {
		n = n.kids[len(n.kids)-1]
	}
	return n.key(len(n.vals) - 1)
}

// fits reports whether the elements [i,j) of a leaf fit into one leaf.
func (n *node[V]) fits(i, j int) bool {
	return fitLeaf(j-i, n.size(i, j))
}

// fitLeaf reports whether a leaf may hold count elements with size bytes of keys.
func fitLeaf(count, size int) bool {
	return count <= crowd || count <= maxLeaf && size <= maxLeafBytes
}

// withKid returns a copy of n with kid as child i. It shares the separators.
func (n *node[V]) withKid(i int, kid *node[V]) *node[V] {
	c := newInner[V](n.packed, len(n.kids))
	copy(c.kids, n.kids)
	c.kids[i], c.n = kid, n.n-n.kids[i].total()+kid.total()
	return c
}

// withKids returns a copy of n with the children [i,j) replaced by first and its siblings. The
// result may have too many children: see divided.
func (n *node[V]) withKids(i, j int, first *node[V], more []sibling[V]) *node[V] {
	seps := make([]string, len(more))
	for x, s := range more {
		seps[x] = s.sep
	}
	c := newInner[V](n.splice(i, j-1, seps...), len(n.kids)-(j-i)+1+len(more))
	copy(c.kids, n.kids[:i])
	c.kids[i] = first
	for x, s := range more {
		c.kids[i+1+x] = s.node
	}
	copy(c.kids[i+1+len(more):], n.kids[j:])
	c.n = count(c.kids)
	return c
}

// divided returns n, split into equal parts if it has too many children.
func (n *node[V]) divided() (*node[V], []sibling[V]) {
	kids, parts := len(n.kids), (len(n.kids)+maxInner-1)/maxInner
	if parts == 1 {
		return n, nil
	}
	more := make([]sibling[V], 0, parts-1)
	for i := 1; i < parts; i++ {
		from, to := i*kids/parts, (i+1)*kids/parts
		more = append(more, sibling[V]{n.key(from - 1), n.cut(from, to)})
	}
	return n.cut(0, kids/parts), more
}

// divide splits a leaf before element i.
func (n *node[V]) divide(i int) (*node[V], []sibling[V]) {
	l, r := n.cut(0, i), n.cut(i, len(n.vals))
	return l, []sibling[V]{{separator(l.key(i-1), r.key(0)), r}}
}

// cut returns a node of the elements or children [i,j).
func (n *node[V]) cut(i, j int) *node[V] {
	if n.leaf() {
		c := newLeaf[V](n.slice(i, j), j-i)
		copy(c.vals, n.vals[i:j])
		return c
	}
	c := newInner[V](n.slice(i, j-1), j-i)
	copy(c.kids, n.kids[i:j])
	c.n = count(c.kids)
	return c
}

// count returns the number of elements below kids.
func count[V any](kids []*node[V]) int {
	total := 0
	for _, kid := range kids {
		total += kid.total()
	}
	return total
}

// rooted returns a tree of first and its siblings.
func rooted[V any](first *node[V], more []sibling[V]) *node[V] {
	for len(more) > 0 {
		top := &node[V]{branch: &branch[V]{kids: []*node[V]{first}}}
		first, more = top.withKids(0, 1, first, more).divided()
	}
	return first
}
