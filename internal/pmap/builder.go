package pmap

import "fmt"

// A Builder leaves some room in each node, so that the first updates of the map do not each split
// one.
const (
	fillLeaf  = maxLeaf * 7 / 8
	fillInner = maxInner * 7 / 8
)

// Builder builds a map from elements in ascending order of their keys, many times faster than Put.
// The zero value is ready for use.
type Builder[V any] struct {
	n      int              // elements of the leaf being filled
	buf    []byte           // their keys
	ends   [fillLeaf]uint32 // their end offsets
	vals   [fillLeaf]V
	leaves []*node[V]
}

// Add appends an element. It copies k. It panics if k is not greater than the previous key, or is
// longer than 64 MiB, so check untrusted input first.
func (b *Builder[V]) Add(k []byte, v V) {
	if len(k) > maxKey { // not checkKey, which would convert k to a string
		panic(fmt.Sprintf("pmap: key of %d bytes", len(k)))
	}
	if b.n > 0 {
		if last := b.last(); string(k) <= string(last) {
			panic(fmt.Sprintf("pmap: key %q added behind %q", k, last))
		}
		if b.n == fillLeaf || !fitLeaf(b.n+1, len(b.buf)+len(k)) {
			b.flush()
		}
	}
	b.buf = append(b.buf, k...)
	b.ends[b.n], b.vals[b.n] = uint32(len(b.buf)), v
	b.n++
}

// last returns the key added last.
func (b *Builder[V]) last() []byte {
	if b.n == 1 {
		return b.buf
	}
	return b.buf[b.ends[b.n-2]:]
}

// flush makes a leaf of the buffered elements.
func (b *Builder[V]) flush() {
	l := newLeaf[V](pack(b.buf, b.ends[:b.n]), b.n)
	copy(l.vals, b.vals[:b.n])
	b.leaves = append(b.leaves, l)
	b.buf, b.n = b.buf[:0], 0
}

// Map returns the map of all elements added. The builder is empty afterwards and
// may be used for another map.
func (b *Builder[V]) Map() Map[V] {
	if b.n > 0 {
		b.flush()
	}
	level := mendLast(b.leaves)
	*b = Builder[V]{}
	if len(level) == 0 {
		return Map[V]{}
	}
	for len(level) > 1 {
		level = parents(level)
	}
	return Map[V]{level[0]}
}

// mendLast joins the last leaf with the previous one if it is small.
func mendLast[V any](leaves []*node[V]) []*node[V] {
	i := len(leaves) - 2
	if i < 0 {
		return leaves
	}
	l, r := leaves[i], leaves[i+1]
	first, more := pair(l, separator(l.last(), r.first()), r)
	leaves = append(leaves[:i], first)
	for _, s := range more {
		leaves = append(leaves, s.node)
	}
	return leaves
}

// parents returns inner nodes over the nodes of one level, about equally full.
func parents[V any](level []*node[V]) []*node[V] {
	groups := (len(level) + fillInner - 1) / fillInner
	up := make([]*node[V], groups)
	for g := range up {
		kids := level[g*len(level)/groups : (g+1)*len(level)/groups]
		seps := make([]string, len(kids)-1)
		for i := range seps {
			seps[i] = separator(kids[i].last(), kids[i+1].first())
		}
		var none packed
		up[g] = newInner[V](none.splice(0, 0, seps...), len(kids))
		copy(up[g].kids, kids)
		up[g].n = count(kids)
	}
	return up
}
