package causal

import (
	"cmp"
	"iter"
	"slices"
)

// Leaf is an atom without its path.
type Leaf struct {
	Dot
	Payload string
}

// Entry holds the live atoms at one path, ascending by replica, at most one per replica. A single
// atom without payload, which is nearly every entry of a set, needs no memory besides the entry.
type Entry struct {
	first Dot
	x     *extra // nil: a single atom without payload
}

// extra is optimized for the usual case: one atom with a payload, as in a counter or register.
type extra struct {
	payload string  // of the first atom
	more    *[]Leaf // the other atoms, nil if there are none
}

// One returns the entry with a single atom.
func One(l Leaf) Entry {
	if l.Payload == "" {
		return Entry{first: l.Dot}
	}
	return Entry{first: l.Dot, x: &extra{payload: l.Payload}}
}

// First returns the atom of the smallest replica. Entries are never empty.
func (e Entry) First() Leaf {
	if e.x == nil {
		return Leaf{Dot: e.first}
	}
	return Leaf{e.first, e.x.payload}
}

func (e Entry) more() []Leaf {
	if e.x == nil || e.x.more == nil {
		return nil
	}
	return *e.x.more
}

// Len returns the number of atoms, one or more.
func (e Entry) Len() int { return 1 + len(e.more()) }

// leaf returns the i-th atom.
func (e Entry) leaf(i int) Leaf {
	if i == 0 {
		return e.First()
	}
	return (*e.x.more)[i-1]
}

// All yields the atoms, ascending by replica.
func (e Entry) All() iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) {
		if !yield(e.First()) {
			return
		}
		for _, l := range e.more() {
			if !yield(l) {
				return
			}
		}
	}
}

// Has reports whether the entry contains the atom of event d.
func (e Entry) Has(d Dot) bool {
	l, ok := e.Of(d.Replica)
	return ok && l.N == d.N
}

// Of returns the atom made by r.
func (e Entry) Of(r Replica) (Leaf, bool) {
	if e.first.Replica == r {
		return e.First(), true
	}
	for _, l := range e.more() {
		if l.Replica == r {
			return l, true
		}
	}
	return Leaf{}, false
}

// Equal reports whether both entries have the same atoms. The identity of an atom determines its
// payload.
func (e Entry) Equal(o Entry) bool {
	if e.first != o.first || e.x == o.x {
		return e.first == o.first
	}
	return slices.EqualFunc(e.more(), o.more(), func(a, b Leaf) bool { return a.Dot == b.Dot })
}

// sameEntries returns the length of the common prefix of a and b, which have equal length.
// Comparisons of states built separately spend their time here.
func sameEntries(a, b []Entry) int {
	b = b[:len(a)]
	for i := range a {
		if x, y := &a[i], &b[i]; x.first != y.first || x.x != y.x && !x.Equal(*y) {
			return i
		}
	}
	return len(a)
}

// With returns the entry with l, which replaces an earlier atom of the same replica.
func (e Entry) With(l Leaf) Entry {
	// The usual case: the owner of a counter slot adds to it.
	if e.first.Replica == l.Replica && len(e.more()) == 0 {
		return One(l)
	}
	leaves := slices.AppendSeq(make([]Leaf, 0, e.Len()+1), e.All())
	i, ok := slices.BinarySearchFunc(leaves, l, byReplica)
	if ok {
		leaves[i] = l
	} else {
		leaves = slices.Insert(leaves, i, l)
	}
	return entryOf(leaves)
}

// Filter returns the entry with the atoms accepted by keep; ok is false if none is left.
func (e Entry) Filter(keep func(Dot) bool) (next Entry, ok bool) {
	if len(e.more()) == 0 {
		return e, keep(e.first)
	}
	var leaves []Leaf
	for l := range e.All() {
		if keep(l.Dot) {
			leaves = append(leaves, l)
		}
	}
	if len(leaves) == 0 {
		return Entry{}, false
	}
	if len(leaves) == e.Len() {
		return e, true
	}
	return entryOf(leaves), true
}

func byReplica(a, b Leaf) int { return cmp.Compare(a.Replica, b.Replica) }

// entryOf takes ownership of leaves, which must be sorted and not empty.
func entryOf(leaves []Leaf) Entry {
	e := One(leaves[0])
	if len(leaves) > 1 {
		if e.x == nil {
			e.x = &extra{}
		}
		more := leaves[1:]
		e.x.more = &more
	}
	return e
}
