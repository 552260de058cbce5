package pmap

import "slices"

// Pair is an element for PutAll.
type Pair[V any] struct {
	Key   string
	Value V
}

// PutAll returns m with all pairs, whose keys must ascend. It copies each node once, however many
// pairs are below it, whereas Put copies the path to each. It panics on a key longer than 64 MiB.
func (m Map[V]) PutAll(pairs []Pair[V]) Map[V] {
	if len(pairs) > 0 && m.root == nil {
		m, pairs = m.Put(pairs[0].Key, pairs[0].Value), pairs[1:]
	}
	switch len(pairs) {
	case 0:
		return m
	case 1:
		return m.Put(pairs[0].Key, pairs[0].Value)
	}
	for _, p := range pairs {
		checkKey(p.Key)
	}
	return Map[V]{rooted(m.root.putAll(pairs))}
}

// putAll returns n with all pairs, and the nodes split off to its right.
func (n *node[V]) putAll(pairs []Pair[V]) (*node[V], []sibling[V]) {
	if n.leaf() {
		return n.putAllLeaf(pairs)
	}
	c := newInner[V](n.packed, len(n.kids))
	copy(c.kids, n.kids)
	c.n = n.n
	for len(pairs) > 0 {
		i := c.child(pairs[0].Key)
		below := len(pairs)
		if i < c.len() {
			below = until(pairs, c.key(i))
		}
		kid, more := c.kids[i].putAll(pairs[:below])
		pairs = pairs[below:]
		if len(more) > 0 {
			c = c.withKids(i, i+1, kid, more)
		} else {
			c.n += kid.total() - c.kids[i].total()
			c.kids[i] = kid
		}
	}
	return c.divided()
}

// until returns the number of pairs with keys less than k. There must be at least one, and it is
// usually a small part of pairs.
func until[V any](pairs []Pair[V], k string) int {
	hi := 1
	for hi < len(pairs) && pairs[hi].Key < k {
		hi *= 2
	}
	lo := hi / 2
	i, _ := slices.BinarySearchFunc(pairs[lo:min(hi, len(pairs))], k,
		func(p Pair[V], k string) int {
			if p.Key < k {
				return -1
			}
			return 1
		})
	return lo + i
}

// putAllLeaf replaces the values of existing keys in one copy, and puts the other keys one by one.
func (n *node[V]) putAllLeaf(pairs []Pair[V]) (*node[V], []sibling[V]) {
	c := newLeaf[V](n.packed, len(n.vals))
	copy(c.vals, n.vals)
	var parts []sibling[V] // c and the nodes split off from it; nil: c alone
	at := 0                // the part that the next key belongs to
	for _, p := range pairs {
		i, eq := n.search(p.Key)
		if eq && parts == nil {
			c.vals[i] = p.Value
			continue
		}
		if parts == nil {
			parts = []sibling[V]{{node: c}}
		}
		for at+1 < len(parts) && p.Key >= parts[at+1].sep {
			at++
		}
		kid, more := parts[at].node.putLeaf(p.Key, p.Value)
		parts[at].node = kid
		parts = slices.Insert(parts, at+1, more...)
	}
	if parts == nil {
		return c, nil
	}
	return parts[0].node, parts[1:]
}
