package causal

import (
	"iter"
	"slices"
	"strings"

	"github.com/concord-go/concord/internal/pmap"
)

// walked is the number of paths of one child that are visited before the rest is skipped at once.
const walked = 8

// Children yields, in order, the prefixes of the values in the map whose paths begin with base,
// which includes the tag. The yielded prefixes alias the store.
func (s Store) Children(base string) iter.Seq[string] {
	return func(yield func(string) bool) {
		from, child := base, ""
		for from != "" {
			from = s.children(base, from, &child, yield)
		}
	}
}

// children yields the children from a path on until it should jump over a large child. It returns
// the path at which to continue, or "" at the end.
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

// keyEnd returns the end of the escaped key that begins at from, including its terminator, or -1.
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

// Diff calls f, in order, for each path whose atoms differ between a and b. The paths alias the
// stores. The cost is proportional to the difference where structure is shared. Marks are not
// compared.
func Diff(a, b Store, f func(path string, ea Entry, inA bool, eb Entry, inB bool) bool) {
	pmap.DiffRuns(a.atoms, b.atoms, sameEntries, f)
}

// ChangedChildren returns, in order, the prefixes of the values in the map at base that differ
// between a and b. A mark alone can change a value: a reset whose counter had already advanced.
func ChangedChildren(a, b Store, base string) (changed []string) {
	add := func(path string) {
		if !strings.HasPrefix(path, base) || len(changed) > 0 &&
			strings.HasPrefix(path, changed[len(changed)-1]) {
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

// Clone copies a path, so that it does not keep its node in memory.
func Clone(path string) string { return strings.Clone(path) }

// ResetPrefix returns the store after event d has reset all paths that begin with p. Paths start at
// the root of the key: p is a whole prefix of them. The atoms are removed. For a counter slot of
// another replica ResetPrefix leaves a mark, since the owner may be adding to the same chain
// concurrently.
func (s Store) ResetPrefix(p string, d Dot) Store {
	next := s
	for path, e := range s.Prefix(p) {
		next = next.markReset(path, e, d)
	}
	return next.DropPrefix(p)
}
