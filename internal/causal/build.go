package causal

import "github.com/concord-go/concord/internal/pmap"

// Builder builds a store from atoms ordered by path and, at one path, by replica. It is many times
// faster than Insert. The zero value is ready for use.
type Builder struct {
	atoms  pmap.Builder[Entry]
	index  indexer
	marks  pmap.Map[Mark]
	path   string
	leaves []Leaf // at path
}

// Add appends an atom, and reports whether its position is in order.
func (b *Builder) Add(path string, l Leaf) bool {
	switch {
	case path > b.path:
		b.flush()
		b.path = path
	case path < b.path || b.leaves[len(b.leaves)-1].Replica >= l.Replica:
		return false
	}
	b.leaves = append(b.leaves, l)
	return true
}

// WithMark adds a mark unless the store has a later one.
func (b *Builder) WithMark(path string, m Mark) {
	b.marks = Store{marks: b.marks}.WithMark(path, m).marks
}

// Store returns the store of all atoms and marks added.
func (b *Builder) Store() Store {
	b.flush()
	return Store{atoms: b.atoms.Map(), marks: b.marks, index: b.index.index()}
}

func (b *Builder) flush() {
	if len(b.leaves) == 0 {
		return
	}
	e := One(b.leaves[0])
	if len(b.leaves) > 1 {
		e = entryOf(append([]Leaf(nil), b.leaves...))
	}
	b.atoms.Add([]byte(b.path), e)
	b.index.add(b.path)
	b.leaves = b.leaves[:0]
}

// Differing calls f, in order, for each path whose atoms are not certainly the same in a and b,
// like pmap.Diff. The cost is proportional to the difference where structure is shared.
func Differing(a, b Store, f func(path string, ea Entry, inA bool, eb Entry, inB bool)) {
	pmap.DiffRuns(a.atoms, b.atoms, sameEntries, func(path string, ea Entry, inA bool, eb Entry,
		inB bool) bool {
		f(path, ea, inA, eb, inB)
		return true
	})
}
