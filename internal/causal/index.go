package causal

import "github.com/concord-go/concord/internal/pmap"

// The index of a store records which maps contain which values, so that counting the keys of a map
// does not iterate over their values. It has one entry for each value with several paths in a map:
//
//	depth of the map, path of the value up to its tag, which is included
//
// Values with a single path need no entry: their atoms are their count.
//
// Invariant: the index is a function of the paths of the atoms. It is therefore not encoded or
// compared.

// outer yields, for each container around the atom at path, its depth and the end of the path of
// the value inside it, including the tag.
func outer(path string, yield func(depth, end int) bool) {
	at := 0
	for depth := 0; at < len(path) && Tag(path[at]).Kind().Holds() && depth < MaxDepth; depth++ {
		end := keyEnd(path, at+1)
		if end < 0 || end >= len(path) {
			return
		}
		indexed := Tag(path[at]).Kind() == ORMap && !Tag(path[end]).Kind().single()
		if indexed && !yield(depth, end+1) {
			return
		}
		at = end
	}
}

func indexKey(depth int, value string) string { return string([]byte{byte(depth)}) + value }

// added records a new path.
func (s Store) added(path string) Store {
	outer(path, func(depth, end int) bool {
		k := indexKey(depth, path[:end])
		if _, ok := s.index.Get(k); !ok {
			s.index = s.index.Put(k, struct{}{})
		}
		return true
	})
	return s
}

// removed records that a path, or all paths that begin with it, have been removed.
func (s Store) removed(path string) Store {
	outer(path, func(depth, end int) bool {
		if s.atoms.CountPrefix(path[:end]) == 0 {
			s.index = s.index.Delete(indexKey(depth, path[:end]))
		}
		return true
	})
	return s
}

// removedPrefix records that all paths that begin with p have been removed.
func (s Store) removedPrefix(p string) Store {
	s = s.removed(p)
	if n := s.index.Len(); n > 0 {
		deepest, _ := s.index.At(n - 1)
		for depth := range int(deepest[0]) + 1 {
			s.index = s.index.DeletePrefix(indexKey(depth, p))
		}
	}
	return s
}

// CountChildren returns the number of values in the map whose paths begin with base. depth is the
// number of containers around the map, kind the kind of its values. The time is proportional to the
// height of the store. A key under which peers have put values of several kinds counts once for
// each.
func (s Store) CountChildren(base string, depth int, kind Kind) int {
	if kind.single() {
		return s.atoms.CountPrefix(base)
	}
	return s.index.CountPrefix(indexKey(depth, base))
}

// indexer builds an index from the paths of a state, in order. The zero value is ready for use.
type indexer struct{ levels []*indexLevel } // by the depth of the maps

type indexLevel struct {
	last string // the value added last
	keys pmap.Builder[struct{}]
}

func (x *indexer) add(path string) {
	if !Tag(path[0]).Kind().Holds() {
		return
	}
	outer(path, func(depth, end int) bool {
		for len(x.levels) <= depth {
			x.levels = append(x.levels, &indexLevel{})
		}
		if l := x.levels[depth]; l.last != path[:end] {
			l.last = Clone(path[:end])
			l.keys.Add([]byte(indexKey(depth, path[:end])), struct{}{})
		}
		return true
	})
}

// index returns the index of all paths added.
func (x *indexer) index() pmap.Map[struct{}] {
	switch len(x.levels) {
	case 0:
		return pmap.Map[struct{}]{}
	case 1:
		return x.levels[0].keys.Map()
	}
	var all pmap.Builder[struct{}]
	for _, l := range x.levels {
		for k := range l.keys.Map().All() {
			all.Add([]byte(k), struct{}{})
		}
	}
	return all.Map()
}
