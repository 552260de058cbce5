package causal

import (
	"iter"
	"slices"
	"strings"

	"github.com/concord-go/concord/internal/pmap"
)

// walked is how many paths of one child are passed one by one before the rest is skipped at once.
const walked = 8

// Children yields the prefixes of the values in the map whose paths begin with base, tag included, in
// order. The yielded prefixes alias the store.
func (s Store) Children(base string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from, child := base, ""
		for from != "" {
			from = s.children(base, from, &child, yield)
		}
	}
}

// children yields the children from a path on until a large one is worth a jump, and returns the path
// to go on from, or nothing at the end.
func (s Store) children(base, from string, child *string, yield func(string) bool) (next string) {
	n := 0
	for path := range s.From(from) {
		if !strings.HasPrefix(path, base) {
			return ""
		}
		if *child != "" && strings.HasPrefix(path, *child) {
			if n++; n < walked {
				continue
			}
			return (*child)[:len(*child)-1] + "\x02" // the end of a key is 0x00 0x01
		}
		end := keyEnd(path, len(base))
		if end < 0 {
			continue // not a path of a map
		}
		n, *child = 1, path[:end]
		if !yield(*child) {
			return ""
		}
	}
	return ""
}

// keyEnd returns where the escaped key that begins at from ends, its end included, or -1.
func keyEnd(path string, from int) int {
	for i := from; i+1 < len(path); i++ {
		if path[i] != 0 {
			continue
		}
		switch path[i+1] {
		case 1:
			return i + 2
		case 0xff:
			i++
		default:
			return -1
		}
	}
	return -1
}

// Diff calls f in order for each path at which other atoms live in b than in a. The paths alias the
// stores. Its cost follows the difference where structure is shared. Marks are not compared.
func Diff(a, b Store, f func(path string, ea Entry, inA bool, eb Entry, inB bool) bool) {
	pmap.DiffRuns(a.atoms, b.atoms, sameEntries, f)
}

// ChangedChildren returns the prefixes of the values in the map at base that are not the same in a
// and b, in order. A value changes also by a mark alone: a reset that its counter had outrun.
func ChangedChildren(a, b Store, base string) (changed []string) {
	add := func(path string) {
		if !strings.HasPrefix(path, base) || len(changed) > 0 && strings.HasPrefix(path, changed[len(changed)-1]) {
			return
		}
		if end := keyEnd(path, len(base)); end >= 0 {
			changed = append(changed, Clone(path[:end]))
		}
	}
	Diff(a, b, func(path string, _ Entry, _ bool, _ Entry, _ bool) bool {
		add(path)
		return true
	})
	pmap.Diff(a.marks, b.marks, sameMark, func(path string, _ Mark, _ bool, _ Mark, _ bool) bool {
		add(path)
		return true
	})
	slices.Sort(changed)
	return slices.Compact(changed)
}

func sameMark(a, b Mark) bool { return a == b }

// Clone frees a path from the node it is a part of, which it would keep in memory.
func Clone(path string) string { return strings.Clone(path) }

// ResetPrefix is Reset for all paths that begin with p. Paths are taken from the root of the key: p is
// a whole prefix of them.
func (s Store) ResetPrefix(p string, d Dot) Store {
	next := s
	for path, e := range s.Prefix(p) {
		next = next.markReset(path, e, d)
	}
	return next.DropPrefix(p)
}
