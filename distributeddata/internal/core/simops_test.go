package core

import (
	"fmt"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
)

type set = crdt.ORSet[string]

// randomOps returns the operations of one update: mostly one, sometimes several on several keys.
func (s *sim) randomOps() []op {
	n := 1
	if s.r.IntN(4) == 0 {
		n = 2 + s.r.IntN(3)
	}
	var ops []op
	for range n {
		o := op{kind: opAdd, key: fmt.Sprint("s", s.r.IntN(s.keys)), sub: string(rune('a' + s.r.IntN(4)))}
		switch x := s.r.IntN(100); {
		case x < 40:
		case x < 90:
			o.kind = opRemove
		default:
			o.kind, o.sub = opDelete, ""
		}
		ops = append(ops, o)
	}
	return ops
}

// perform carries the operations out through the typed values, as a program would.
func perform(t *Txn, ops []op) error {
	w, end := crdt.Host(t.Dot(), t.Stamp())
	defer end()
	for _, o := range ops {
		if err := performOne(t, w, o); err != nil {
			return err
		}
	}
	return w.Err()
}

func performOne(t *Txn, w *crdt.Writer, o op) error {
	switch {
	case o.kind == opDelete:
		t.Clear(o.key)
		return nil
	case o.key[0] == 's':
		return edit(t, w, o.key, set{}, func(v *set) {
			if o.kind == opAdd {
				v.Add(w, o.sub)
			} else {
				v.Remove(w, o.sub)
			}
		})
	}
	return fmt.Errorf("no type for key %q", o.key)
}

func edit[T crdt.Value[T]](t *Txn, w *crdt.Writer, key string, empty T, change func(*T)) error {
	base := t.Get(key)
	v, err := crdt.Load(empty, base, t.Seen())
	if err != nil {
		return err
	}
	change(&v)
	next, err := crdt.Save(w, base, v)
	if err != nil {
		return err
	}
	t.Put(key, next)
	return nil
}

// shown returns what a user sees in a state, in the form of the specification.
func shown(keys pmap.Map[causal.Store]) (string, error) {
	facts := map[string]int64{}
	for key, s := range keys.All() {
		if s.Empty() {
			continue
		}
		switch key[0] {
		case 's':
			v, err := crdt.Load(set{}, s, causal.Vector{})
			if err != nil {
				return "", err
			}
			for e := range v.All() {
				facts[key+"/"+e] = 1
			}
		}
	}
	return lines(facts), nil
}
