package pmap

import (
	"fmt"
	"strings"
)

// Map is an immutable map from byte strings to V, ordered by key. The zero value is the empty map.
// Copying a Map takes a snapshot.
type Map[V any] struct{ root *node[V] }

// Len returns the number of elements.
func (m Map[V]) Len() int {
	if m.root == nil {
		return 0
	}
	return m.root.total()
}

// Same reports whether m and o are the same version and therefore equal. False proves nothing,
// since equal maps may have been built separately.
func (m Map[V]) Same(o Map[V]) bool {
	return m.root == o.root
}

// Get returns the value of k, and whether there is one.
func (m Map[V]) Get(k string) (v V, ok bool) {
	n := m.root
	if n == nil {
		return v, false
	}
	for !n.leaf() {
		n = n.kids[n.child(k)]
	}
	if i, eq := n.search(k); eq {
		return n.vals[i], true
	}
	return v, false
}

// At returns the i-th element in the order of the keys, starting at 0. It panics if i is out of
// range. The key aliases the map.
func (m Map[V]) At(i int) (string, V) {
	if i < 0 || i >= m.Len() {
		panic(fmt.Sprintf("pmap: index %d out of range with length %d", i, m.Len()))
	}
	n := m.root
	for !n.leaf() {
		x := 0
		for i >= n.kids[x].total() {
			i -= n.kids[x].total()
			x++
		}
		n = n.kids[x]
	}
	return n.key(i), n.vals[i]
}

// CountPrefix returns how many keys begin with p.
func (m Map[V]) CountPrefix(p string) int {
	if m.root == nil {
		return 0
	}
	if m.root.all(p) {
		return m.root.total()
	}
	return m.root.rankPast(p) - m.root.rank(p)
}

// Bounds returns the first and the last key that begin with p; ok is false if there are none. The
// keys alias the map.
func (m Map[V]) Bounds(p string) (first, last string, ok bool) {
	if m.root == nil {
		return "", "", false
	}
	if m.root.all(p) {
		return m.root.first(), m.root.last(), true
	}
	n := m.root
	for !n.leaf() {
		n = n.kids[n.child(p)]
	}
	i, _ := n.search(p)
	if j := n.past(p); j < len(n.vals) { // all of them in one leaf, or none
		if i == j {
			return "", "", false
		}
		return n.key(i), n.key(j - 1), true
	}
	from, to := m.root.rank(p), m.root.rankPast(p)
	if from == to {
		return "", "", false
	}
	first, _ = m.At(from)
	last, _ = m.At(to - 1)
	return first, last, true
}

// all reports whether all keys below n begin with p.
func (n *node[V]) all(p string) bool {
	return strings.HasPrefix(n.first(), p) && strings.HasPrefix(n.last(), p)
}

// rank returns how many keys are less than k.
func (n *node[V]) rank(k string) int {
	total := 0
	for !n.leaf() {
		i := n.child(k)
		total += count(n.kids[:i])
		n = n.kids[i]
	}
	i, _ := n.search(k)
	return total + i
}

// rankPast returns how many keys are less than p or begin with it.
func (n *node[V]) rankPast(p string) int {
	total := 0
	for !n.leaf() {
		i := n.past(p)
		total += count(n.kids[:i])
		n = n.kids[i]
	}
	return total + n.past(p)
}

// Put returns m with the value v at k. It panics on a key longer than 64 MiB.
func (m Map[V]) Put(k string, v V) Map[V] {
	checkKey(k)
	if m.root == nil {
		var none packed
		n := newLeaf[V](none.splice(0, 0, k), 1)
		n.vals[0] = v
		return Map[V]{n}
	}
	return Map[V]{rooted(m.root.put(k, v))}
}

func checkKey(k string) {
	if len(k) > maxKey {
		panic(fmt.Sprintf("pmap: key of %d bytes", len(k)))
	}
}
