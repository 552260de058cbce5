package core

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// effects is what the revoked events of a replica did to a key, in all [R57].
type effects struct {
	causal.Change               // but for the own counter slots
	deps          causal.Vector // of clears
	slots         map[string]*ownSlot
}

// ownSlot is what the revoked events did to a counter slot of the replica.
type ownSlot struct {
	had   causal.Leaf // what it held before; without a dot: nothing
	holds causal.Leaf // what it holds after
}

// recall adds what is left of an own event: atoms that live, and what it took away of others.
func (v *revoked) recall(e undo) {
	d := causal.Dot{Replica: v.was, N: e.n}
	for _, w := range e.work {
		k := w.keyChange(d)
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
			if l, ok := at.Of(v.was); ok && l.N == e.n && !owns(v.was, a.Path) {
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

// noteSlots notes what the slots of a replica hold in a store.
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

// again makes the effects those of the event d.
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

// again adds what was added to a slot to that of the event's replica. If what the slot held before was reset, it
// takes that off: another replica that went on with the slot must be told how much that was [R9].
func (s *ownSlot) again(ch *causal.Change, path string, d causal.Dot) {
	had, _ := causal.ParseTotal(s.had.Payload)
	holds, err := causal.ParseTotal(s.holds.Payload)
	goesOn := err == nil && holds.Since == had.Since
	if s.had.N > 0 && !goesOn {
		ch.Removes = append(ch.Removes, causal.Atom{Path: path, Leaf: causal.Leaf{Dot: s.had.Dot}})
		ch.Marks = append(ch.Marks, causal.MarkAt{Path: path, Mark: causal.Mark{N: s.had.N, Plus: had.Plus, Minus: had.Minus, By: d}})
	}
	if goesOn {
		holds.Plus, holds.Minus = holds.Plus-had.Plus, holds.Minus-had.Minus
	}
	beside, ok := causal.SlotOf(path, d.Replica)
	if !ok || holds.Plus|holds.Minus == 0 {
		return
	}
	holds.Since = d.N
	ch.Adds = append(ch.Adds, causal.Atom{Path: beside, Leaf: causal.Leaf{Dot: d, Payload: holds.Payload()}})
}
