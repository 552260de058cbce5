package pmap

// Delete returns m without k. The result is m itself if k is absent.
func (m Map[V]) Delete(k string) Map[V] {
	if m.root == nil {
		return m
	}
	root := m.root.del(k)
	switch {
	case root.total() == 0:
		return Map[V]{}
	case !root.leaf() && len(root.kids) == 1:
		return Map[V]{root.kids[0]}
	}
	return Map[V]{root}
}

// del returns n without k, or n itself if k is absent. The result may be small, and a leaf may be
// empty: the caller mends it.
func (n *node[V]) del(k string) *node[V] {
	if n.leaf() {
		return n.delLeaf(k)
	}
	i := n.child(k)
	switch kid := n.kids[i].del(k); {
	case kid == n.kids[i]:
		return n
	case kid.small():
		return n.mend(i, kid)
	default:
		return n.withKid(i, kid)
	}
}

func (n *node[V]) delLeaf(k string) *node[V] {
	i, eq := n.search(k)
	if !eq {
		return n
	}
	c := newLeaf[V](n.splice(i, i+1), len(n.vals)-1)
	copy(c.vals, n.vals[:i])
	copy(c.vals[i:], n.vals[i+1:])
	return c
}

// mend returns n with the small kid as child i, joined with its neighbour.
func (n *node[V]) mend(i int, kid *node[V]) *node[V] {
	lo := max(i-1, 0)
	l, r := n.kids[lo], kid
	if i == 0 {
		l, r = kid, n.kids[1]
	}
	first, more := pair(l, n.key(lo), r)
	return n.withKids(lo, lo+2, first, more)
}

// pair makes one or two nodes of two neighbours of the same height, so that none is small if
// possible.
func pair[V any](l *node[V], sep string, r *node[V]) (*node[V], []sibling[V]) {
	switch {
	case l.total() == 0:
		return r, nil
	case r.total() == 0:
		return l, nil
	case !l.small() && !r.small():
		return l, []sibling[V]{{sep, r}}
	case l.leaf():
		return pairLeaves(l, sep, r)
	}
	p := l.splice(l.len(), l.len(), sep)
	c := newInner[V](p.concat(r.packed), len(l.kids)+len(r.kids))
	copy(c.kids[copy(c.kids, l.kids):], r.kids)
	c.n = l.n + r.n
	return c.divided()
}

// pairLeaves is pair for two leaves, at least one of them small. If the keys are too long for one
// leaf, the two stay as they are.
func pairLeaves[V any](l *node[V], sep string, r *node[V]) (*node[V], []sibling[V]) {
	total, size := len(l.vals)+len(r.vals), l.bytes()+r.bytes()
	one := fitLeaf(total, size)
	if !one && total <= maxLeaf {
		return l, []sibling[V]{{sep, r}}
	}
	c := newLeaf[V](l.concat(r.packed), total)
	copy(c.vals[copy(c.vals, l.vals):], r.vals)
	if one {
		return c, nil
	}
	if i := total / 2; c.fits(0, i) && c.fits(i, total) {
		return c.divide(i)
	}
	return l, []sibling[V]{{sep, r}}
}
