package causal

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync/atomic"
)

// leafSize is the maximum number of entries of a vector kept in one slice.
const leafSize = 32

// node is a part of a vector with more than leafSize entries: an immutable binary trie over the
// bits of the replicas. Its shape is a function of the entries: a node of at most leafSize entries
// is a leaf, any other node splits them at the highest bit in which they differ. Derived vectors
// share nodes, and comparisons and joins skip shared nodes.
type node struct {
	dots        []Dot // of a leaf: ascending by replica
	left, right *node // of a branch
	pivot       Replica
	events      uint64                 // sum of the numbers
	hash        uint64                 // sum of the hashes of the entries
	digest      atomic.Pointer[Digest] // computed on first use
	count       int32
	bit         int8
}

func (n *node) part() part { return part{n.dots, int(n.bit), n.pivot, n} }

func (n *node) len() int { return int(n.count) }

// part is a node, or a range of entries of a leaf.
type part struct {
	dots  []Dot   // ascending by replica; nil for a branch
	bit   int     // the highest in which entries differ, -1 for a single one
	pivot Replica // the smallest possible replica with this bit set
	n     *node   // the node that this part is, nil if it is less than a leaf
}

// leafPart describes entries in order.
func leafPart(dots []Dot) part {
	if len(dots) == 0 {
		return part{}
	}
	first, last := dots[0].Replica, dots[len(dots)-1].Replica
	bit := topBit(first ^ last)
	return part{dots: dots, bit: bit, pivot: from(last, bit)}
}

func topBit(x Replica) int { return bits.Len64(uint64(x)) - 1 }

// from returns the smallest replica that shares with r the bits from bit on.
func from(r Replica, bit int) Replica {
	if bit < 0 {
		return r
	}
	return r >> bit << bit
}

func (p part) empty() bool { return p.n == nil && len(p.dots) == 0 }

func (p part) len() int {
	if p.n != nil {
		return p.n.len()
	}
	return len(p.dots)
}

// same reports whether both parts are certainly the same.
func (p part) same(o part) bool {
	return p.n != nil && p.n == o.n ||
		len(p.dots) > 0 && len(p.dots) == len(o.dots) && &p.dots[0] == &o.dots[0]
}

// common returns where to split the entries of both parts. Neither part may be empty.
func common(a, b part) (bit int, pivot Replica) {
	bit, pivot = a.bit, a.pivot
	if b.bit > bit {
		bit, pivot = b.bit, b.pivot
	}
	if x := topBit(a.pivot ^ b.pivot); x > bit {
		return x, from(max(a.pivot, b.pivot), x)
	}
	return bit, pivot
}

// split returns the entries before the pivot, and those from it on. A pivot returned by common for
// the part lies inside a branch only if it is the branch's own pivot.
func (p part) split(pivot Replica) (before, behind part) {
	switch {
	case p.dots != nil:
		i, _ := find(p.dots, pivot)
		if i == 0 {
			return part{}, p
		}
		if i == len(p.dots) {
			return p, part{}
		}
		return leafPart(p.dots[:i]), leafPart(p.dots[i:])
	case p.n == nil:
		return p, p
	case p.pivot == pivot:
		return p.n.left.part(), p.n.right.part()
	case p.pivot < pivot:
		return p, part{}
	}
	return part{}, p
}

// leaf returns a leaf of at most leafSize ordered entries, of which it takes ownership.
func leaf(dots []Dot) *node {
	p := leafPart(dots)
	n := &node{dots: dots, pivot: p.pivot, bit: int8(p.bit), count: int32(len(dots))}
	for _, d := range dots {
		n.events += d.N
		n.hash += d.hash()
	}
	return n
}

// build returns a tree of ordered entries, of which it takes ownership.
func build(dots []Dot) *node {
	if len(dots) <= leafSize {
		return leaf(slices.Clip(dots))
	}
	p := leafPart(dots)
	i, _ := find(dots, p.pivot)
	return branch(p.bit, p.pivot, build(slices.Clone(dots[:i])), build(slices.Clone(dots[i:])))
}

func branch(bit int, pivot Replica, left, right *node) *node {
	return &node{
		left: left, right: right, pivot: pivot, bit: int8(bit),
		count: left.count + right.count, events: left.events + right.events,
		hash: left.hash + right.hash,
	}
}

// join returns the tree of the two sides of a split. Either may be nil.
func join(bit int, pivot Replica, left, right *node) *node {
	switch {
	case left == nil:
		return right
	case right == nil:
		return left
	case left.count+right.count <= leafSize: // so both are leaves
		return leaf(slices.Concat(left.dots, right.dots))
	}
	return branch(bit, pivot, left, right)
}

// find returns the index of r among ordered entries, or where it would be inserted.
func find(dots []Dot, r Replica) (int, bool) {
	lo, hi := 0, len(dots)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); dots[mid].Replica < r {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(dots) && dots[lo].Replica == r
}

// rank returns the number of entries before r, and the number of r, or 0 if r has no entry.
func (n *node) rank(r Replica) (before int, number uint64) {
	for n.left != nil {
		if r < n.pivot {
			n = n.left
		} else {
			before += n.left.len()
			n = n.right
		}
	}
	i, ok := find(n.dots, r)
	if ok {
		number = n.dots[i].N
	}
	return before + i, number
}

// at returns the i-th entry.
func (n *node) at(i int) Dot {
	for n.left != nil {
		if i < n.left.len() {
			n = n.left
		} else {
			i -= n.left.len()
			n = n.right
		}
	}
	return n.dots[i]
}

func (n *node) all(yield func(Dot) bool) bool {
	if n.left != nil {
		return n.left.all(yield) && n.right.all(yield)
	}
	for _, d := range n.dots {
		if !yield(d) {
			return false
		}
	}
	return true
}

// put returns the tree with d, whose number must differ from the current one.
func (n *node) put(d Dot) *node {
	switch {
	case n.left == nil:
		i, ok := find(n.dots, d.Replica)
		if ok {
			return n.raise(i, d)
		}
		return build(insert(n.dots, i, ok, d))
	case topBit(d.Replica^n.pivot) > int(n.bit): // not below this node
		p := leafPart([]Dot{d})
		bit, pivot := common(n.part(), p)
		if d.Replica < pivot {
			return branch(bit, pivot, leaf(p.dots), n)
		}
		return branch(bit, pivot, n, leaf(p.dots))
	case d.Replica < n.pivot:
		return branch(int(n.bit), n.pivot, n.left.put(d), n.right)
	}
	return branch(int(n.bit), n.pivot, n.left, n.right.put(d))
}

// raise returns the leaf n with d in place of entry i.
func (n *node) raise(i int, d Dot) *node {
	was := n.dots[i]
	return &node{
		dots: insert(n.dots, i, true, d), pivot: n.pivot, bit: n.bit, count: n.count,
		events: n.events - was.N + d.N, hash: n.hash - was.hash() + d.hash(),
	}
}

// insert returns a copy of the entries with d as the i-th entry. d replaces the entry there, or is
// inserted before it.
func insert(dots []Dot, i int, replace bool, d Dot) []Dot {
	if replace {
		dots = slices.Clone(dots)
		dots[i] = d
		return dots
	}
	out := make([]Dot, len(dots)+1)
	copy(out, dots[:i])
	out[i] = d
	copy(out[i+1:], dots[i:])
	return out
}

// drop returns the tree without r, which must have an entry. It returns nil if no entry is left.
func (n *node) drop(r Replica) *node {
	switch {
	case n.left == nil:
		i, _ := find(n.dots, r)
		if len(n.dots) == 1 {
			return nil
		}
		return leaf(slices.Concat(n.dots[:i], n.dots[i+1:]))
	case r < n.pivot:
		return join(int(n.bit), n.pivot, n.left.drop(r), n.right)
	}
	return join(int(n.bit), n.pivot, n.left, n.right.drop(r))
}

// alike reports whether both are branches that split at the same place. Nodes with shared
// descendants do.
func alike(a, b *node) bool { return a.left != nil && b.left != nil && a.pivot == b.pivot }

// leqNode reports whether b covers everything that a covers.
func leqNode(a, b *node) bool {
	switch {
	case a == b:
		return true
	case !alike(a, b):
		return leqPart(a.part(), b.part())
	case a.count > b.count || a.events > b.events:
		return false
	}
	return leqNode(a.left, b.left) && leqNode(a.right, b.right)
}

// leqPart reports whether o covers everything that p covers.
func leqPart(p, o part) bool {
	switch {
	case p.empty() || p.same(o):
		return true
	case p.len() > o.len() || p.n != nil && o.n != nil && p.n.events > o.n.events:
		return false
	case p.dots != nil && o.dots != nil:
		return leq(p.dots, o.dots)
	case p.n != nil && o.n != nil && alike(p.n, o.n):
		return leqNode(p.n, o.n)
	}
	_, pivot := common(p, o)
	p1, p2 := p.split(pivot)
	o1, o2 := o.split(pivot)
	return leqPart(p1, o1) && leqPart(p2, o2)
}

// leq is leqPart for ordered entries.
func leq(a, b []Dot) bool {
	if len(a) > len(b) {
		return false
	}
	if len(a) > 0 && &a[0] == &b[0] { // the same slice, or a prefix of it
		return true
	}
	j := 0
	for _, d := range a {
		for j < len(b) && b[j].Replica < d.Replica {
			j++
		}
		if j == len(b) || b[j].Replica != d.Replica || b[j].N < d.N {
			return false
		}
	}
	return true
}

// diffNode yields the replicas for which a and b cover different numbers.
func diffNode(a, b *node, yield func(r Replica, a, b uint64) bool) bool {
	switch {
	case a == b:
		return true
	case !alike(a, b):
		return diffPart(a.part(), b.part(), yield)
	}
	return diffNode(a.left, b.left, yield) && diffNode(a.right, b.right, yield)
}

// diffPart yields the replicas for which a and b cover different numbers.
func diffPart(a, b part, yield func(r Replica, a, b uint64) bool) bool {
	switch {
	case a.same(b) || a.empty() && b.empty():
		return true
	case a.empty() && b.n != nil:
		return b.n.all(func(d Dot) bool { return yield(d.Replica, 0, d.N) })
	case b.empty() && a.n != nil:
		return a.n.all(func(d Dot) bool { return yield(d.Replica, d.N, 0) })
	case (a.empty() || a.dots != nil) && (b.empty() || b.dots != nil):
		return diff(a.dots, b.dots, yield)
	case a.n != nil && b.n != nil && alike(a.n, b.n):
		return diffNode(a.n, b.n, yield)
	}
	_, pivot := common(a, b)
	a1, a2 := a.split(pivot)
	b1, b2 := b.split(pivot)
	return diffPart(a1, b1, yield) && diffPart(a2, b2, yield)
}

// diff is diffPart for ordered entries.
func diff(a, b []Dot, yield func(r Replica, a, b uint64) bool) bool {
	for len(a) > 0 || len(b) > 0 {
		var ok bool
		switch c := order(a, b); {
		case c < 0:
			ok, a = yield(a[0].Replica, a[0].N, 0), a[1:]
		case c > 0:
			ok, b = yield(b[0].Replica, 0, b[0].N), b[1:]
		default:
			ok = a[0].N == b[0].N || yield(a[0].Replica, a[0].N, b[0].N)
			a, b = a[1:], b[1:]
		}
		if !ok {
			return false
		}
	}
	return true
}

// order compares the next entries of two lists, of which one may be empty: 0 means both have the
// next replica.
func order(a, b []Dot) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return cmp.Compare(a[0].Replica, b[0].Replica)
}

// mergeNode returns the union of a and b if either is set, or else their intersection. It returns a
// or b itself if that is the result.
func mergeNode(a, b *node, either bool) *node {
	switch {
	case a == b:
		return a
	case !alike(a, b):
		return mergePart(a.part(), b.part(), either)
	}
	left, right := mergeNode(a.left, b.left, either), mergeNode(a.right, b.right, either)
	switch {
	case left == a.left && right == a.right:
		return a
	case left == b.left && right == b.right:
		return b
	}
	return join(int(a.bit), a.pivot, left, right)
}

// mergePart returns the union of a and b if either is set, or else their intersection. It returns a
// or b itself if that is the result.
func mergePart(a, b part, either bool) *node {
	switch {
	case a.same(b):
		return a.tree()
	case a.empty() || b.empty():
		if !either {
			return nil
		}
		if a.empty() {
			a = b
		}
		return a.tree()
	case a.dots != nil && b.dots != nil:
		return merged(a, b, either)
	case a.n != nil && b.n != nil && alike(a.n, b.n):
		return mergeNode(a.n, b.n, either)
	}
	bit, pivot := common(a, b)
	a1, a2 := a.split(pivot)
	b1, b2 := b.split(pivot)
	left, right := mergePart(a1, b1, either), mergePart(a2, b2, either)
	for _, x := range []*node{a.n, b.n} {
		if x != nil && x.left != nil && x.left == left && x.right == right {
			return x
		}
	}
	return join(bit, pivot, left, right)
}

// merged is mergePart for ordered entries.
func merged(a, b part, either bool) *node {
	less, more := a, b
	if leq(b.dots, a.dots) {
		less, more = b, a
	} else if !leq(a.dots, b.dots) {
		if out := merge(a.dots, b.dots, either); len(out) > 0 {
			return build(out)
		}
		return nil
	}
	if either {
		return more.tree()
	}
	return less.tree()
}

func merge(a, b []Dot, either bool) []Dot {
	out := make([]Dot, 0, max(len(a), len(b))+1)
	for len(a) > 0 || len(b) > 0 {
		switch c := order(a, b); {
		case c < 0:
			if either {
				out = append(out, a[0])
			}
			a = a[1:]
		case c > 0:
			if either {
				out = append(out, b[0])
			}
			b = b[1:]
		default:
			n := min(a[0].N, b[0].N)
			if either {
				n = max(a[0].N, b[0].N)
			}
			out = append(out, Dot{a[0].Replica, n})
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// tree returns the part as an independent node, or nil if it is empty.
func (p part) tree() *node {
	switch {
	case p.n != nil:
		return p.n
	case len(p.dots) == 0:
		return nil
	}
	return leaf(slices.Clip(p.dots))
}

// hash depends only on the entry, so that sums of hashes are independent of the order of entries.
func (d Dot) hash() uint64 {
	x := uint64(d.Replica) * 0x9e3779b97f4a7c15
	x ^= x >> 32
	x = (x + d.N) * 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>29
}

// sum returns the digest of the entries below: for a leaf, of its entries; for a branch, of its
// halves. It is computed once.
func (n *node) sum() Digest {
	if d := n.digest.Load(); d != nil {
		return *d
	}
	b := make([]byte, 0, 1+16*leafSize)
	if n.left != nil {
		l, r := n.left.sum(), n.right.sum()
		b = append(append(append(b, 1), l[:]...), r[:]...)
	} else {
		b = append(b, 0)
		for _, e := range n.dots {
			b = binary.LittleEndian.AppendUint64(b, uint64(e.Replica))
			b = binary.LittleEndian.AppendUint64(b, e.N)
		}
	}
	whole := sha256.Sum256(b)
	d := Digest(whole[:])
	n.digest.Store(&d)
	return d
}
