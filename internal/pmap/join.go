package pmap

// DeletePrefix returns m without the keys that begin with p, or m itself if there are none. The
// result shares all but O(log n) nodes with m.
func (m Map[V]) DeletePrefix(p string) Map[V] {
	if m.CountPrefix(p) == 0 {
		return m
	}
	return Map[V]{join(m.root.before(p), m.root.behind(p))}
}

// before returns a tree of the keys below n that are less than k, or nil if there are none.
func (n *node[V]) before(k string) *node[V] {
	if n.leaf() {
		i, _ := n.search(k)
		return n.tree(0, i)
	}
	i := n.child(k)
	return join(n.tree(0, i), n.kids[i].before(k))
}

// behind returns a tree of the keys below n that are greater than p and do not begin with it, or
// nil if there are none.
func (n *node[V]) behind(p string) *node[V] {
	i := n.past(p)
	if n.leaf() {
		return n.tree(i, len(n.vals))
	}
	return join(n.kids[i].behind(p), n.tree(i+1, len(n.kids)))
}

// tree returns a tree of the elements or children [i,j), or nil if there are none. A single child
// is returned itself, one level lower.
func (n *node[V]) tree(i, j int) *node[V] {
	switch {
	case i == j:
		return nil
	case !n.leaf() && j == i+1:
		return n.kids[i]
	}
	return n.cut(i, j)
}

// join returns a tree of all elements of l and r; all keys of l must be less than those of r.
// Either may be nil. The time is proportional to the height.
func join[V any](l, r *node[V]) *node[V] {
	if l == nil {
		return r
	}
	if r == nil {
		return l
	}
	return rooted(graft(l, separator(l.last(), r.first()), r, l.height()-r.height()))
}

// graft attaches the lower of two trees to the edge of the other, at the level where the heights
// agree. higher is the height of l minus that of r.
func graft[V any](l *node[V], sep string, r *node[V], higher int) (*node[V], []sibling[V]) {
	switch {
	case higher > 0:
		i := len(l.kids) - 1
		kid, more := graft(l.kids[i], sep, r, higher-1)
		return l.withKids(i, i+1, kid, more).divided()
	case higher < 0:
		kid, more := graft(l, sep, r.kids[0], higher+1)
		return r.withKids(0, 1, kid, more).divided()
	}
	return pair(l, sep, r)
}

// height returns the number of levels below n.
func (n *node[V]) height() int {
	h := 0
	for ; !n.leaf(); n = n.kids[0] {
		h++
	}
	return h
}
