package core

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// effects is the total effect of a replica's revoked events on a key [R57].
type effects struct {
	causal.Change               // without the own counter slots
	deps          causal.Vector // of the clears
	slots         map[string]*ownSlot
}

// ownSlot is the effect of the revoked events on a counter slot of the replica.
type ownSlot struct {
	had   causal.Leaf // content before; without a dot: none
	holds causal.Leaf // content after
}

// recall adds what is left of own events: atoms that live, and their removals of others.
func (v *revoked) recall(e undo) {
	last := causal.Dot{Replica: v.was, N: e.n}
	for _, w := range e.work {
		k := w.keyChange(e.from, last)
		if k.Empty() {
			continue
		}
		x := v.keys[w.key]
		if x == nil {
			x = &effects{slots: map[string]*ownSlot{}}
			x.noteSlots(w.before, v.was, func(s *ownSlot, l causal.Leaf) { s.had = l })
			v.keys[w.key] = x
		}
		h, _ := v.held.Get(w.key)
		for _, a := range k.Adds {
			at, _ := h.Get(a.Path)
			if l, ok := at.Of(v.was); ok && l.N == a.N && !owns(v.was, a.Path) {
				x.Adds = append(x.Adds, causal.Atom{Path: a.Path, Leaf: l})
			}
		}
		for _, a := range k.Removes {
			if (a.Replica != v.was || a.N <= v.common) && !owns(v.was, a.Path) {
				x.Removes = append(x.Removes, a)
			}
		}
		x.Marks = append(x.Marks, k.Marks...)
		if k.Clear {
			x.Clear, x.deps = true, x.deps.Join(e.seen.Set(v.was, min(v.common, e.seen.Get(v.was))))
		}
		x.noteSlots(h.Store, v.was, func(s *ownSlot, l causal.Leaf) { s.holds = l })
	}
}

func owns(r causal.Replica, path string) bool {
	owner, ok := causal.SlotOwner(path)
	return ok && owner == r
}

// noteSlots calls note for each slot of a replica in a store.
func (x *effects) noteSlots(s causal.Store, me causal.Replica, note func(*ownSlot, causal.Leaf)) {
	for path, e := range s.Prefix("") {
		l, ok := e.Of(me)
		if !ok || !owns(me, path) {
			continue
		}
		path = causal.Clone(path)
		if x.slots[path] == nil {
			x.slots[path] = &ownSlot{}
		}
		note(x.slots[path], l)
	}
}

// removed reports whether events of r with these effects took away what is at a path.
func (x *effects) removed(r causal.Replica, path string, at causal.Leaf) bool {
	if at.Replica == r && x.slots[path] != nil || x.Clear && x.deps.Covers(at.Dot) {
		return true
	}
	return slices.ContainsFunc(x.Removes, func(a causal.Atom) bool {
		return a.Path == path && a.Dot == at.Dot
	})
}

// again returns the effects as those of the event d.
func (x *effects) again(d causal.Dot) causal.Change {
	ch := causal.Change{Removes: x.Removes, Clear: x.Clear}
	for _, a := range x.Adds {
		a.Dot = d
		ch.Adds = append(ch.Adds, a)
	}
	for _, m := range x.Marks {
		m.By = d
		ch.Marks = append(ch.Marks, m)
	}
	for _, path := range slices.Sorted(maps.Keys(x.slots)) {
		x.slots[path].again(&ch, path, d)
	}
	return ch
}

// again adds the increments of a slot to the slot of the event's replica. If the content from
// before was reset, it subtracts that: a replica that continued with the slot must learn how much
// that was [R9].
func (s *ownSlot) again(ch *causal.Change, path string, d causal.Dot) {
	had, _ := causal.ParseTotal(s.had.Payload)
	holds, err := causal.ParseTotal(s.holds.Payload)
	goesOn := err == nil && holds.Since == had.Since
	if s.had.N > 0 && !goesOn {
		ch.Removes = append(ch.Removes, causal.Atom{Path: path, Leaf: causal.Leaf{Dot: s.had.Dot}})
		ch.Marks = append(ch.Marks, causal.MarkAt{Path: path, Mark: causal.Mark{
			N: s.had.N, Plus: had.Plus, Minus: had.Minus, By: d}})
	}
	if goesOn {
		holds.Plus, holds.Minus = holds.Plus-had.Plus, holds.Minus-had.Minus
	}
	beside, ok := causal.SlotOf(path, d.Replica)
	if !ok || holds.Plus|holds.Minus == 0 {
		return
	}
	holds.Since = d.N
	ch.Adds = append(ch.Adds, causal.Atom{Path: beside, Leaf: causal.Leaf{
		Dot: d, Payload: holds.Payload()}})
}
