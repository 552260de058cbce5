package causal

import (
	"iter"

	"github.com/concord-go/concord/internal/pmap"
)

// Store is the state of one value: its live atoms by path, and the marks of its counters. It is
// immutable: methods that change it return another store that shares structure. The zero value is
// empty.
type Store struct {
	atoms pmap.Map[Entry]
	marks pmap.Map[Mark]
	index pmap.Map[struct{}]
}

// Mark records a reset of the counter slot at its path: the event By has reset the totals that the
// slot's owner held at its event N. A mark outlives the atom, since an increment concurrent with
// the reset still carries the old totals (see the counters of package crdt).
type Mark struct {
	N           uint64
	Plus, Minus uint64
	By          Dot
}

// supersedes orders marks of one slot: the later reset point wins, then any fixed order.
func (m Mark) supersedes(o Mark) bool {
	if m.N != o.N {
		return m.N > o.N
	}
	return m.By.Compare(o.By) > 0
}

// Empty reports whether the store has no live atoms, so that the value is absent. It may have
// marks.
func (s Store) Empty() bool { return s.atoms.Len() == 0 }

// Blank reports whether the store is empty and has no marks.
func (s Store) Blank() bool { return s.Empty() && s.marks.Len() == 0 }

// Len returns the number of paths with live atoms.
func (s Store) Len() int { return s.atoms.Len() }

// Same reports whether both stores are certainly the same; false proves nothing.
func (s Store) Same(o Store) bool { return s.atoms.Same(o.atoms) && s.marks.Same(o.marks) }

// SameValue reports whether both stores certainly show the same value: their atoms are the same,
// and no mark that only one of them has reduces a live counter slot.
func (s Store) SameValue(o Store) bool {
	return s.atoms.Same(o.atoms) && s.sameCounts(o)
}

// EqualValue reports whether both stores show the same value. It compares atoms where the stores do
// not share them.
func (s Store) EqualValue(o Store) bool {
	same := s.Len() == o.Len()
	if same {
		pmap.DiffRuns(s.atoms, o.atoms, sameEntries, func(string, Entry, bool, Entry, bool) bool {
			same = false
			return false
		})
	}
	return same && s.sameCounts(o)
}

// sameCounts reports whether no mark that only one of two stores with equal atoms has reduces a
// live counter slot.
func (s Store) sameCounts(o Store) bool {
	same := true
	pmap.Diff(s.marks, o.marks, sameMark, func(path string, _ Mark, _ bool, _ Mark, _ bool) bool {
		e, live := s.atoms.Get(path)
		for i := 0; live && i < e.Len(); i++ {
			plus, minus := s.Contribution(path, e.leaf(i))
			otherPlus, otherMinus := o.Contribution(path, e.leaf(i))
			same = same && plus == otherPlus && minus == otherMinus
		}
		return same
	})
	return same
}

// Get returns the atoms at a path.
func (s Store) Get(path string) (Entry, bool) { return s.atoms.Get(path) }

// At returns the i-th path in order with its atoms.
func (s Store) At(i int) (string, Entry) { return s.atoms.At(i) }

// Prefix yields the paths that begin with p in order. The yielded paths alias the store.
func (s Store) Prefix(p string) iter.Seq2[string, Entry] { return s.atoms.Prefix(p) }

// From yields the paths from p on, in order.
func (s Store) From(p string) iter.Seq2[string, Entry] { return s.atoms.From(p) }

// LastUse returns the atoms that record the last use of the entry.
func (s Store) LastUse() (Entry, bool) {
	n := s.Len()
	if n == 0 {
		return Entry{}, false
	}
	path, e := s.At(n - 1)
	return e, path == UsePath
}

// CountPrefix returns the number of paths that begin with p.
func (s Store) CountPrefix(p string) int { return s.atoms.CountPrefix(p) }

// Put returns the store with l as the only atom at path: it replaces the atoms observed there.
func (s Store) Put(path string, l Leaf) Store {
	return s.put(path, One(l))
}

func (s Store) put(path string, e Entry) Store {
	n := s.atoms.Len()
	if s.atoms = s.atoms.Put(path, e); s.atoms.Len() > n {
		return s.added(path)
	}
	return s
}

// Drop returns the store without the atoms at path.
func (s Store) Drop(path string) Store {
	n := s.atoms.Len()
	if s.atoms = s.atoms.Delete(path); s.atoms.Len() < n {
		return s.removed(path)
	}
	return s
}

// DropPrefix returns the store without the atoms at paths that begin with p.
func (s Store) DropPrefix(p string) Store {
	n := s.atoms.Len()
	if s.atoms = s.atoms.DeletePrefix(p); s.atoms.Len() < n {
		return s.removedPrefix(p)
	}
	return s
}

// Insert returns the store with the atom added to those of other replicas.
func (s Store) Insert(path string, l Leaf) Store {
	e, ok := s.atoms.Get(path)
	if !ok {
		return s.Put(path, l)
	}
	return s.put(path, e.With(l))
}

// Remove returns the store without the atom (path, d), if it exists.
func (s Store) Remove(path string, d Dot) Store {
	return s.filter(path, func(o Dot) bool { return o != d })
}

// filter keeps the atoms at path accepted by keep.
func (s Store) filter(path string, keep func(Dot) bool) Store {
	e, ok := s.atoms.Get(path)
	if !ok {
		return s
	}
	next, left := e.Filter(keep)
	switch {
	case !left:
		return s.Drop(path)
	case next.Len() != e.Len():
		return s.put(path, next)
	}
	return s
}

// Clear returns the store without the atoms that deps covers. If most are, the others are put into
// a store without atoms.
func (s Store) Clear(deps Vector) Store {
	behind := func(d Dot) bool { return !deps.Covers(d) }
	changed := 0
	for _, e := range s.atoms.All() {
		if next, left := e.Filter(behind); !left || next.Len() != e.Len() {
			changed++
		}
	}
	if changed == 0 {
		return s
	}
	out, rebuild := s, changed > s.Len()/2
	if rebuild {
		out = s.DropPrefix("")
	}
	for path, e := range s.atoms.All() {
		switch next, left := e.Filter(behind); {
		case left && (rebuild || next.Len() != e.Len()):
			out = out.put(path, next)
		case !left && !rebuild:
			out = out.Drop(path)
		}
	}
	return out
}

// Mark returns the mark of the counter slot at path.
func (s Store) Mark(path string) (Mark, bool) { return s.marks.Get(path) }

// Marks yields all marks in path order.
func (s Store) Marks() iter.Seq2[string, Mark] { return s.marks.All() }

// MarksFrom yields the marks from a path on.
func (s Store) MarksFrom(path string) iter.Seq2[string, Mark] { return s.marks.From(path) }

// WithMark returns the store with m, unless it has a later mark.
func (s Store) WithMark(path string, m Mark) Store {
	if old, ok := s.marks.Get(path); !ok || m.supersedes(old) {
		s.marks = s.marks.Put(path, m)
	}
	return s
}

// WithoutMark returns the store without the mark at path.
func (s Store) WithoutMark(path string) Store {
	s.marks = s.marks.Delete(path)
	return s
}

// Join merges two states of one value, each with its vector of seen events. An atom stays if it is
// in both, or if the side without it has not seen it. Of two marks the one with the later reset
// point stays. The cost is proportional to the difference of structures that share nodes. Join
// returns a itself if b adds nothing.
func Join(a Store, seenA Vector, b Store, seenB Vector) Store {
	out := a
	pmap.DiffRuns(a.atoms, b.atoms, sameEntries, func(path string, ea Entry, inA bool, eb Entry,
		inB bool) bool {
		switch e, ok := joined(ea, inA, seenA, eb, inB, seenB); {
		case ok && !(inA && e.Equal(ea)):
			out = out.put(path, e)
		case inA && !ok:
			out = out.Drop(path)
		}
		return true
	})
	for path, m := range b.marks.All() {
		out = out.WithMark(path, m)
	}
	return out
}

// joined is Join at one path.
func joined(ea Entry, inA bool, seenA Vector, eb Entry, inB bool, seenB Vector) (e Entry, ok bool) {
	if inA {
		e, ok = ea.Filter(func(d Dot) bool { return !seenB.Covers(d) || inB && eb.Has(d) })
	}
	if !inB {
		return e, ok
	}
	for l := range eb.All() {
		if !seenA.Covers(l.Dot) {
			if ok {
				e = e.With(l)
			} else {
				e, ok = One(l), true
			}
		}
	}
	return e, ok
}

// HasMarks reports whether any mark is kept.
func (s Store) HasMarks() bool { return s.marks.Len() > 0 }

// SameMarks reports whether the marks are certainly the same.
func (s Store) SameMarks(o Store) bool { return s.marks.Same(o.marks) }
