package causal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-go/concord/internal/pmap"
)

// Atom is one live fact, or only its identity where the payload does not matter.
type Atom struct {
	Path string
	Leaf
}

// Change is the change of one event to one store.
type Change struct {
	Adds    []Atom   // made by the event: all have its dot
	Removes []Atom   // observed and removed atoms; without payload
	Clear   bool     // removes everything the event's origin had seen there, without listing it
	Marks   []MarkAt // resets of counter slots
}

// MarkAt is a mark with its path.
type MarkAt struct {
	Path string
	Mark
}

// Empty reports whether the change does nothing.
func (c Change) Empty() bool {
	return len(c.Adds) == 0 && len(c.Removes) == 0 && !c.Clear && len(c.Marks) == 0
}

// Between returns the change of event d that turned base into next, computed from their difference.
// Atoms that an update made and removed again leave no trace. The cost is proportional to the
// change where structure is shared. Between returns an error if an added atom has a dot other than
// d, since a value from elsewhere was then inserted.
func Between(base, next Store, d Dot) (Change, error) {
	return BetweenSince(base, next, d.N-1, d, Change{})
}

// BetweenSince is Between for the events of one replica after number from up to the event last. An
// atom that one of them added and a later one removed leaves no trace. The result overwrites room,
// to use its memory again.
func BetweenSince(base, next Store, from uint64, last Dot, room Change) (c Change, err error) {
	c = Change{Adds: room.Adds[:0], Removes: room.Removes[:0], Marks: room.Marks[:0]}
	pmap.DiffRuns(base.atoms, next.atoms, sameEntries, func(path string, eb Entry, inBase bool,
		en Entry, inNext bool) bool {
		err = c.at(Clone(path), eb, inBase, en, inNext, from, last)
		return err == nil
	})
	pmap.Diff(base.marks, next.marks, sameMark, func(path string, _ Mark, _ bool, m Mark,
		ok bool) bool {
		if ok {
			c.Marks = append(c.Marks, MarkAt{Clone(path), m})
		}
		return true
	})
	return c, err
}

// BetweenAt is like Between for stores that differ only at the given paths, and not in their marks.
// It takes ownership of paths.
func BetweenAt(base, next Store, d Dot, paths []string) (c Change, err error) {
	slices.Sort(paths)
	paths = slices.Compact(paths)
	allNew := next.Len() == base.Len()+len(paths)
	for _, path := range paths {
		var eb Entry
		var inBase bool
		if !allNew {
			eb, inBase = base.atoms.Get(path)
		}
		en, inNext := next.atoms.Get(path)
		if err := c.at(path, eb, inBase, en, inNext, d.N-1, d); err != nil {
			return c, err
		}
	}
	return c, nil
}

// at adds the change at one path.
func (c *Change) at(path string, eb Entry, inBase bool, en Entry, inNext bool, from uint64,
	last Dot) error {
	if inBase {
		for i := range eb.Len() {
			if l := eb.leaf(i); !inNext || !en.Has(l.Dot) {
				c.Removes = append(c.Removes, Atom{Path: path, Leaf: Leaf{Dot: l.Dot}})
			}
		}
	}
	if inNext {
		for i := range en.Len() {
			switch l := en.leaf(i); {
			case inBase && eb.Has(l.Dot):
			case l.Replica != last.Replica || l.N <= from || l.N > last.N:
				return fmt.Errorf("atom of event %v inserted by event %v", l.Dot, last)
			default:
				c.Adds = append(c.Adds, Atom{Path: path, Leaf: l})
			}
		}
	}
	return nil
}

// Take returns the store with the difference between base and next applied at the paths that begin
// with prefix. Between two states of one history the cost is proportional to the change.
func (s Store) Take(base, next Store, prefix string) Store {
	if s.Same(base) { // the usual case: at most one field changed
		return next
	}
	Diff(base, next, func(path string, _ Entry, _ bool, e Entry, in bool) bool {
		switch {
		case !strings.HasPrefix(path, prefix):
		case in:
			s = s.put(path, e)
		default:
			s = s.Drop(path)
		}
		return true
	})
	pmap.Diff(base.marks, next.marks, sameMark, func(path string, _ Mark, _ bool, m Mark,
		in bool) bool {
		if in && strings.HasPrefix(path, prefix) {
			s = s.WithMark(path, m)
		}
		return true
	})
	return s
}

// Apply returns the store after the change of an event whose origin had seen deps. seen is the
// vector that the store's owner covered before the event. Atoms already covered have been removed
// since and are not restored.
func (s Store) Apply(c Change, deps, seen Vector) Store {
	for _, a := range c.Adds {
		if !seen.Covers(a.Dot) {
			s = s.Insert(a.Path, a.Leaf)
		}
	}
	for _, r := range c.Removes {
		s = s.Remove(r.Path, r.Dot)
	}
	if c.Clear {
		s = s.Clear(deps)
	}
	for _, m := range c.Marks {
		s = s.WithMark(m.Path, m.Mark)
	}
	return s
}
