package pmap

// put returns n with v at k, and the nodes split off to its right.
func (n *node[V]) put(k string, v V) (*node[V], []sibling[V]) {
	if n.leaf() {
		return n.putLeaf(k, v)
	}
	i := n.child(k)
	kid, more := n.kids[i].put(k, v)
	if len(more) == 0 {
		return n.withKid(i, kid), nil
	}
	return n.withKids(i, i+1, kid, more).divided()
}

func (n *node[V]) putLeaf(k string, v V) (*node[V], []sibling[V]) {
	i, eq := n.search(k)
	if eq {
		c := newLeaf[V](n.packed, len(n.vals))
		copy(c.vals, n.vals)
		c.vals[i] = v
		return c, nil
	}
	c := newLeaf[V](n.splice(i, i, k), len(n.vals)+1)
	copy(c.vals, n.vals[:i])
	c.vals[i] = v
	copy(c.vals[i+1:], n.vals[i:])
	if c.fits(0, len(c.vals)) {
		return c, nil
	}
	return c.divideLeaf(i)
}

// divideLeaf splits an overfull leaf whose element at was added last. Keys that arrive in ascending
// order leave the left part nearly full.
func (n *node[V]) divideLeaf(at int) (*node[V], []sibling[V]) {
	total := len(n.vals)
	i := total / 2
	if at == total-1 {
		i = max(1, total*3/4)
	}
	if n.fits(0, i) && n.fits(i, total) {
		return n.divide(i)
	}
	if i := n.evenCut(); i > 0 {
		return n.divide(i)
	}
	return n.isolate(at)
}

// evenCut returns the index at which both parts of a leaf fit and differ least in bytes, or 0 if
// there is none.
func (n *node[V]) evenCut() int {
	total := len(n.vals)
	best, least := 0, n.bytes()+1
	for i := 1; i < total; i++ {
		heavier := max(n.size(0, i), n.size(i, total))
		if heavier < least && n.fits(0, i) && n.fits(i, total) {
			best, least = i, heavier
		}
	}
	return best
}

// isolate gives the long element at, which fits with neither of its neighbours, a leaf of its own.
// It is not at an end, where a simple split would have sufficed.
func (n *node[V]) isolate(at int) (*node[V], []sibling[V]) {
	l, rest := n.divide(at)
	long, right := rest[0].node.divide(1)
	return l, []sibling[V]{{rest[0].sep, long}, right[0]}
}
