package causal

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Replica identifies one incarnation of a replica: a restart makes another one. Zero is not a valid
// id.
type Replica uint64

func (r Replica) String() string { return fmt.Sprintf("%016x", uint64(r)) }

// Dot identifies one event: the N-th change made by Replica, with N starting at 1.
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

// Vector holds, for each replica, the number of its covered events; an absent replica has none. It
// is immutable and safe for concurrent reads. The zero value covers nothing.
//
// Raising one of n entries costs O(log n). Derived vectors share most of their entries: comparing
// and joining them, and listing their differences, costs O(log n) for each difference. Replicas
// that are long gone therefore cost little besides their memory, about 24 bytes each.
type Vector struct {
	few  []Dot // ascending by replica, N > 0; nil if there are more than leafSize entries
	tree *node // if there are more than leafSize entries
}

// MakeVector builds a vector from entries in any order. For several entries of one replica it uses
// the largest.
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

// vectorOf takes ownership of ordered entries.
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

// Rank returns how many of the replicas with covered events are before r, and the number of r, or 0
// if none of its events is covered. Rank and At cost O(log n).
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

// Hash returns a hash of the vector. Equal vectors have equal hashes, and different vectors have
// equal hashes only by chance. It takes constant time.
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

// Digest identifies a vector: equal vectors have equal digests, and finding two different vectors
// with one digest is infeasible. A digest is the first 24 bytes of a SHA-256 hash, so a collision
// takes 2^96 attempts.
type Digest [24]byte

// Digest returns the digest. For a vector derived from one whose digest is known it costs O(log n)
// per difference.
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

// With returns the vector raised to cover the events of d's replica up to d. The receiver is
// unchanged.
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

// put returns the vector with d in place of the entry of d's replica, if any.
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

// Apply returns the vector with new numbers for some replicas; 0 removes the entry. The changes
// must ascend by replica.
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

// Join returns the union of both: v or o itself if one covers the other.
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

// aFew is the maximum number of entries that Join raises one by one.
const aFew = 4

func (v Vector) raised(dots []Dot) Vector {
	for _, d := range dots {
		v = v.With(d)
	}
	return v
}

// Meet returns the intersection of both: v or o itself if one covers the other.
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

// Differing yields the replicas for which v and o cover different events, ascending, with the
// numbers of both.
func (v Vector) Differing(o Vector) iter.Seq2[Replica, [2]uint64] {
	return func(yield func(Replica, [2]uint64) bool) {
		diffPart(v.part(), o.part(), func(r Replica, a, b uint64) bool {
			return yield(r, [2]uint64{a, b})
		})
	}
}

// Beyond yields the last covered events of v that o does not cover, ascending by replica.
func (v Vector) Beyond(o Vector) iter.Seq[Dot] {
	return func(yield func(Dot) bool) {
		diffPart(v.part(), o.part(), func(r Replica, a, b uint64) bool {
			return a <= b || yield(Dot{r, a})
		})
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
