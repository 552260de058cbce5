package pmap

import (
	"iter"
	"strings"
)

// All returns the elements in the order of the keys. The keys alias the map.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.root != nil {
			m.root.walk(yield)
		}
	}
}

// From returns the elements whose keys are k or greater, in the order of the keys.
// The keys alias the map.
func (m Map[V]) From(k string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.root != nil {
			m.root.walkFrom(k, yield)
		}
	}
}

// Prefix returns the elements whose keys begin with p, in the order of the keys.
// The keys alias the map.
func (m Map[V]) Prefix(p string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.root == nil {
			return
		}
		m.root.walkFrom(p, func(k string, v V) bool {
			return strings.HasPrefix(k, p) && yield(k, v)
		})
	}
}

// walk yields the elements below n and reports whether to continue.
func (n *node[V]) walk(yield func(string, V) bool) bool {
	if n.leaf() {
		return n.walkLeaf(0, yield)
	}
	for _, kid := range n.kids {
		if !kid.walk(yield) {
			return false
		}
	}
	return true
}

// walkFrom is walk for the keys from k on.
func (n *node[V]) walkFrom(k string, yield func(string, V) bool) bool {
	if n.leaf() {
		i, _ := n.search(k)
		return n.walkLeaf(i, yield)
	}
	i := n.child(k)
	if !n.kids[i].walkFrom(k, yield) {
		return false
	}
	for _, kid := range n.kids[i+1:] {
		if !kid.walk(yield) {
			return false
		}
	}
	return true
}

// walkLeaf yields the elements of a leaf from i on.
func (n *node[V]) walkLeaf(i int, yield func(string, V) bool) bool {
	for ; i < len(n.vals); i++ {
		if !yield(n.key(i), n.vals[i]) {
			return false
		}
	}
	return true
}
