package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
)

type (
	set       = crdt.ORSet[string]
	counters  = crdt.ORMap[string, crdt.PNCounter]
	registers = crdt.LWWMap[string, int64]
)

// randomOps returns the operations of one update: mostly one, sometimes several on several keys.
func randomOps(r *rand.Rand, keys int) []op {
	n := 1
	if r.IntN(4) == 0 {
		n = 2 + r.IntN(3)
	}
	var ops []op
	for range n {
		sub := string(rune('a' + r.IntN(4)))
		o := op{key: fmt.Sprint([]string{"s", "c", "r"}[r.IntN(3)], r.IntN(keys)), sub: sub, value: int64(1 + r.IntN(9))}
		switch x := r.IntN(100); {
		case x >= 92:
			o.kind, o.sub = opDelete, ""
		case x < 55:
			o.kind = map[byte]opKind2{'s': opAdd, 'c': opCount, 'r': opWrite}[o.key[0]]
		default:
			o.kind = map[byte]opKind2{'s': opRemove, 'c': opDrop, 'r': opDrop}[o.key[0]]
		}
		ops = append(ops, o)
	}
	return ops
}

// levels are the words for levels, by kind.
var levels = [...]string{Local: "local", Majority: "majority", All: "all"}

// quiet and refused are words for updates that nobody waits for.
const quiet, refused = "quiet", "refused"

// opsText is what parseOps reads.
func opsText(ops []op) string {
	s := make([]string, len(ops))
	for i, o := range ops {
		s[i] = o.String()
	}
	return strings.Join(s, ", ")
}

// parseOps reads operations like "add s0/a 5, drop c1/b 0".
func parseOps(words []string) (ops []op, err error) {
	for text := range strings.SplitSeq(strings.Join(words, " "), ", ") {
		f := strings.Fields(text)
		if len(f) != 3 {
			return nil, fmt.Errorf("operation %q must be KIND KEY/PART NUMBER", text)
		}
		kind := slices.Index(opKinds[:], f[0])
		key, sub, _ := strings.Cut(f[1], "/")
		value, err := strconv.ParseInt(f[2], 10, 64)
		if kind < 0 || err != nil || key == "" || !strings.Contains("scr", key[:1]) {
			return nil, fmt.Errorf("operation %q: kinds are %v, keys begin with s, c or r", text, opKinds)
		}
		ops = append(ops, op{kind: opKind2(kind), key: key, sub: sub, value: value})
	}
	return ops, nil
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
	case o.key[0] == 'c':
		return edit(t, w, o.key, counters{}, func(v *counters) {
			if o.kind == opCount {
				v.Update(w, o.sub, func(n *crdt.PNCounter) { n.Add(w, o.value) })
			} else {
				v.Remove(w, o.sub)
			}
		})
	case o.key[0] == 'r':
		return edit(t, w, o.key, registers{}, func(v *registers) {
			if o.kind == opWrite {
				v.Set(w, o.sub, o.value)
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

func shownState(s *State) (string, error) { return shown(s.Keys) }

// shown returns what a user sees in a state, in the form of the specification.
func shown(keys Keys) (string, error) {
	facts := map[string]int64{}
	for key, s := range keys.All() {
		if s.Empty() {
			continue
		}
		switch key[0] {
		case 's':
			v, err := crdt.Load(set{}, s.Store, causal.Vector{})
			if err != nil {
				return "", err
			}
			for e := range v.All() {
				facts[key+"/"+e] = 1
			}
		case 'c':
			v, err := crdt.Load(counters{}, s.Store, causal.Vector{})
			if err != nil {
				return "", err
			}
			for k, n := range v.All() {
				facts[key+"/"+k] = n.Value()
			}
		case 'r':
			v, err := crdt.Load(registers{}, s.Store, causal.Vector{})
			if err != nil {
				return "", err
			}
			for k, n := range v.All() {
				facts[key+"/"+k] = n
			}
		}
	}
	return lines(facts), nil
}
