package causal

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Replica names one incarnation of one replica: a restart makes another one. Zero is nobody.
type Replica uint64

func (r Replica) String() string { return fmt.Sprintf("%016x", uint64(r)) }

// Dot names one event: the N-th change made by Replica, N from 1.
type Dot struct {
	Replica Replica
	N       uint64
}

func (d Dot) String() string { return fmt.Sprintf("%v:%d", d.Replica, d.N) }

// Compare orders dots by replica, then by number.
func (d Dot) Compare(o Dot) int {
	if c := cmp.Compare(d.Replica, o.Replica); c != 0 {
		return c
	}
	return cmp.Compare(d.N, o.N)
}

// Vector says for each replica how many of its events are covered; absent means none. It is immutable
// and safe for concurrent readers; the zero value covers nothing.
//
// Of a vector of n entries, raising one costs O(log n). Vectors made from one another share most of
// their entries: comparing and joining them, and listing what differs, cost O(log n) for each difference. So
// replicas that have been gone for long cost next to nothing but their memory, some 24 bytes each.
type Vector struct {
	few  []Dot // ascending by replica, N > 0; nil if there are more than leafSize
	tree *node // of more than leafSize entries
}

// MakeVector builds a vector from entries in any order. Of several entries of one replica the largest
// counts.
func MakeVector(entries ...Dot) Vector {
	e := slices.DeleteFunc(slices.Clone(entries), func(d Dot) bool { return d.N == 0 })
	if !slices.IsSortedFunc(e, Dot.Compare) {
		slices.SortFunc(e, Dot.Compare)
	}
	last := 0
	for i, d := range e {
		if i > 0 && e[last].Replica != d.Replica {
			last++
		}
		e[last] = d
	}
	return vectorOf(e[:min(last+1, len(e))])
}

// vectorOf takes ownership of entries in order.
func vectorOf(entries []Dot) Vector {
	if len(entries) <= leafSize {
		return Vector{few: entries}
	}
	return Vector{tree: build(entries)}
}

func treeVector(n *node) Vector {
	switch {
	case n == nil:
		return Vector{}
	case n.left == nil:
		return Vector{few: n.dots}
	}
	return Vector{tree: n}
}

func (v Vector) part() part {
	if v.tree != nil {
		return v.tree.part()
	}
	return leafPart(v.few)
}

// Rank returns how many of the replicas with covered events are before r, and the number of r, 0 if
// none of its events is covered. It costs O(log n), as does At.
func (v Vector) Rank(r Replica) (before int, n uint64) {
	if v.tree != nil {
		return v.tree.rank(r)
	}
	i, ok := find(v.few, r)
	if ok {
		n = v.few[i].N
	}
	return i, n
}

// At returns the i-th entry.
func (v Vector) At(i int) Dot {
	if v.tree != nil {
		return v.tree.at(i)
	}
	return v.few[i]
}

// Get returns the number of the last covered event of r.
func (v Vector) Get(r Replica) uint64 {
	_, n := v.Rank(r)
	return n
}

// Covers reports whether the event d is covered.
func (v Vector) Covers(d Dot) bool { return d.N <= v.Get(d.Replica) }

// Len returns the number of replicas with covered events.
func (v Vector) Len() int {
	if v.tree != nil {
		return v.tree.len()
	}
	return len(v.few)
}

// Events returns the number of covered events.
func (v Vector) Events() (n uint64) {
	if v.tree != nil {
		return v.tree.events
	}
	for _, d := range v.few {
		n += d.N
	}
	return n
}

// Hash returns a number that equal vectors have in common and others have not, but by chance. It costs nothing.
func (v Vector) Hash() uint64 {
	if v.tree != nil {
		return v.tree.hash
	}
	var h uint64
	for _, d := range v.few {
		h += d.hash()
	}
	return h
}

// Digest is a name of a vector: equal vectors have the same, and nobody can make two others that do. It is made of
// the first 24 bytes of SHA-256: to find two vectors of one name takes 2^96 attempts.
type Digest [24]byte

// Digest returns the digest. Of a vector made from another it costs O(log n) for each difference,
// once that one's is known.
func (v Vector) Digest() Digest {
	if v.tree != nil {
		return v.tree.sum()
	}
	return leaf(v.few).sum()
}

// All yields the entries, ascending by replica.
func (v Vector) All() iter.Seq[Dot] {
	return func(yield func(Dot) bool) {
		if v.tree != nil {
			v.tree.all(yield)
			return
		}
		for _, d := range v.few {
			if !yield(d) {
				return
			}
		}
	}
}

// With returns the vector raised to cover the events of d's replica up to d. The receiver stays.
func (v Vector) With(d Dot) Vector {
	if v.tree != nil {
		if d.N <= v.Get(d.Replica) {
			return v
		}
		return v.put(d)
	}
	i, ok := find(v.few, d.Replica)
	if d.N == 0 || ok && d.N <= v.few[i].N {
		return v
	}
	return vectorOf(insert(v.few, i, ok, d))
}

// put returns the vector with d in the place of what it has of d's replica, if anything.
func (v Vector) put(d Dot) Vector {
	if v.tree != nil {
		return Vector{tree: v.tree.put(d)}
	}
	i, ok := find(v.few, d.Replica)
	return vectorOf(insert(v.few, i, ok, d))
}

// Set returns the vector with exactly n covered events of r, which may be fewer than before.
func (v Vector) Set(r Replica, n uint64) Vector {
	switch was := v.Get(r); {
	case n == was:
		return v
	case n > 0:
		return v.put(Dot{r, n})
	case v.tree != nil:
		return treeVector(v.tree.drop(r))
	}
	i, _ := find(v.few, r)
	return Vector{few: slices.Concat(v.few[:i], v.few[i+1:])}
}

// Apply returns the vector with other numbers for some replicas, 0 for none. The changes ascend by replica.
func (v Vector) Apply(changes []Dot) Vector {
	if 16*len(changes) < v.Len() {
		for _, d := range changes {
			v = v.Set(d.Replica, d.N)
		}
		return v
	}
	out := make([]Dot, 0, v.Len()+len(changes))
	for d := range v.All() {
		for len(changes) > 0 && changes[0].Replica < d.Replica {
			out, changes = append(out, changes[0]), changes[1:]
		}
		if len(changes) > 0 && changes[0].Replica == d.Replica {
			d, changes = changes[0], changes[1:]
		}
		out = append(out, d)
	}
	out = append(out, changes...)
	return vectorOf(slices.DeleteFunc(out, func(d Dot) bool { return d.N == 0 }))
}

// Leq reports whether o covers everything that v covers.
func (v Vector) Leq(o Vector) bool {
	switch {
	case v.tree == nil && o.tree == nil:
		return leq(v.few, o.few)
	case o.tree == nil:
		return false
	case v.tree == nil:
		return !slices.ContainsFunc(v.few, func(d Dot) bool { return !o.Covers(d) })
	}
	return leqNode(v.tree, o.tree)
}

// Before reports whether o covers everything that v covers, and more.
func (v Vector) Before(o Vector) bool { return v.Leq(o) && !o.Leq(v) }

// Equal reports whether both cover the same events.
func (v Vector) Equal(o Vector) bool {
	if v.tree == nil || o.tree == nil {
		return v.tree == o.tree && slices.Equal(v.few, o.few)
	}
	if v.tree.count != o.tree.count || v.tree.hash != o.tree.hash {
		return false
	}
	return diffPart(v.part(), o.part(), func(Replica, uint64, uint64) bool { return false })
}

// Join returns what either covers: v or o itself when one covers the other.
func (v Vector) Join(o Vector) Vector {
	switch {
	case v.tree != nil && o.tree == nil && len(o.few) <= aFew:
		return v.raised(o.few)
	case o.tree != nil && v.tree == nil && len(v.few) <= aFew:
		return o.raised(v.few)
	case v.tree != nil || o.tree != nil:
		return treeVector(mergePart(v.part(), o.part(), true))
	case leq(o.few, v.few):
		return v
	case leq(v.few, o.few):
		return o
	}
	return vectorOf(merge(v.few, o.few, true))
}

// aFew is how many entries are raised one by one.
const aFew = 4

func (v Vector) raised(dots []Dot) Vector {
	for _, d := range dots {
		v = v.With(d)
	}
	return v
}

// Meet returns what both cover: v or o itself when one covers the other.
func (v Vector) Meet(o Vector) Vector {
	switch {
	case v.tree != nil || o.tree != nil:
		return treeVector(mergePart(v.part(), o.part(), false))
	case leq(v.few, o.few):
		return v
	case leq(o.few, v.few):
		return o
	}
	return vectorOf(merge(v.few, o.few, false))
}

// Differing yields the replicas of which v and o do not cover the same events, ascending, with the
// numbers of both.
func (v Vector) Differing(o Vector) iter.Seq2[Replica, [2]uint64] {
	return func(yield func(Replica, [2]uint64) bool) {
		diffPart(v.part(), o.part(), func(r Replica, a, b uint64) bool { return yield(r, [2]uint64{a, b}) })
	}
}

// Beyond yields the last covered events of v, ascending by replica, that o does not cover.
func (v Vector) Beyond(o Vector) iter.Seq[Dot] {
	return func(yield func(Dot) bool) {
		diffPart(v.part(), o.part(), func(r Replica, a, b uint64) bool { return a <= b || yield(Dot{r, a}) })
	}
}

// String lists the entries in order, for logs and goldens.
func (v Vector) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for d := range v.All() {
		if b.Len() > 1 {
			b.WriteByte(' ')
		}
		b.WriteString(d.String())
	}
	b.WriteByte('}')
	return b.String()
}
