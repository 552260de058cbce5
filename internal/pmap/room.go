package pmap

// A node is allocated together with the array of its values or children, in a few sizes: an update
// makes a node for each level, and allocation is most of its cost. The sizes waste less than one
// value, two pointers or eight pointers.
type (
	leaf1[V any] struct {
		node[V]
		room [1]V
	}
	leaf2[V any] struct {
		node[V]
		room [2]V
	}
	leaf4[V any] struct {
		node[V]
		room [4]V
	}
	leaf6[V any] struct {
		node[V]
		room [6]V
	}
	leaf8[V any] struct {
		node[V]
		room [8]V
	}
	leaf10[V any] struct {
		node[V]
		room [10]V
	}
	leaf12[V any] struct {
		node[V]
		room [12]V
	}
	leaf14[V any] struct {
		node[V]
		room [14]V
	}
	leaf16[V any] struct {
		node[V]
		room [16]V
	}
	inner4[V any] struct {
		node[V]
		below branch[V]
		room  [4]*node[V]
	}
	inner8[V any] struct {
		node[V]
		below branch[V]
		room  [8]*node[V]
	}
	inner16[V any] struct {
		node[V]
		below branch[V]
		room  [16]*node[V]
	}
	inner24[V any] struct {
		node[V]
		below branch[V]
		room  [24]*node[V]
	}
	inner32[V any] struct {
		node[V]
		below branch[V]
		room  [32]*node[V]
	}
)

// newLeaf returns a leaf with room for n values.
func newLeaf[V any](keys packed, n int) *node[V] {
	switch {
	case n > maxLeaf: // will be divided
		return &node[V]{packed: keys, vals: make([]V, n)}
	case n > 14:
		l := new(leaf16[V])
		return l.fill(keys, l.room[:n])
	case n > 12:
		l := new(leaf14[V])
		return l.fill(keys, l.room[:n])
	case n > 10:
		l := new(leaf12[V])
		return l.fill(keys, l.room[:n])
	case n > 8:
		l := new(leaf10[V])
		return l.fill(keys, l.room[:n])
	case n > 6:
		l := new(leaf8[V])
		return l.fill(keys, l.room[:n])
	case n > 4:
		l := new(leaf6[V])
		return l.fill(keys, l.room[:n])
	case n > 2:
		l := new(leaf4[V])
		return l.fill(keys, l.room[:n])
	case n > 1:
		l := new(leaf2[V])
		return l.fill(keys, l.room[:n])
	}
	l := new(leaf1[V])
	return l.fill(keys, l.room[:n])
}

func (n *node[V]) fill(keys packed, vals []V) *node[V] {
	n.packed, n.vals = keys, vals
	return n
}

// newInner returns an inner node with room for the given number of children.
func newInner[V any](keys packed, kids int) *node[V] {
	switch {
	case kids > maxInner: // will be divided
		return &node[V]{packed: keys, branch: &branch[V]{kids: make([]*node[V], kids)}}
	case kids > 24:
		n := new(inner32[V])
		return n.over(keys, &n.below, n.room[:kids])
	case kids > 16:
		n := new(inner24[V])
		return n.over(keys, &n.below, n.room[:kids])
	case kids > 8:
		n := new(inner16[V])
		return n.over(keys, &n.below, n.room[:kids])
	case kids > 4:
		n := new(inner8[V])
		return n.over(keys, &n.below, n.room[:kids])
	}
	n := new(inner4[V])
	return n.over(keys, &n.below, n.room[:kids])
}

func (n *node[V]) over(keys packed, below *branch[V], kids []*node[V]) *node[V] {
	below.kids = kids
	n.packed, n.branch = keys, below
	return n
}
