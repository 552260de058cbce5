package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// op is one operation of an update.
type op struct {
	kind  opKind2
	key   string // of the entry; its first letter is its kind
	sub   string // element, or key inside the map
	value int64
}

type opKind2 uint8

const (
	opAdd    opKind2 = iota // add an element to a set, or switch on
	opRemove                // remove it, or switch off
	opCount                 // add to a counter
	opWrite                 // write a register
	opDrop                  // remove a key of a map, or reset
	opDelete                // delete the whole entry
	opTake                  // decrement a bounded counter
	opGive                  // transfer the right to do so
)

var opKinds = [...]string{"add", "remove", "count", "write", "drop", "delete", "take", "give"}

func (o op) String() string {
	return fmt.Sprintf("%s %s/%s %d", opKinds[o.kind], o.key, o.sub, o.value)
}

// randomOps returns the operations of one update, on keys of some kinds: mostly one operation,
// sometimes several on several keys.
func randomOps(r *rand.Rand, letters string, keys int) []op {
	n := 1
	if r.IntN(4) == 0 {
		n = 2 + r.IntN(3)
	}
	var ops []op
	for range n {
		letter := letters[r.IntN(len(letters))]
		verbs := kinds[letter].verbs
		o := op{key: fmt.Sprintf("%c%d", letter, r.IntN(keys)), sub: string(rune('a' + r.IntN(4))),
			value: int64(1 + r.IntN(9))}
		if o.kind = verbs[r.IntN(len(verbs))]; r.IntN(12) == 0 {
			o.kind, o.sub = opDelete, ""
		}
		ops = append(ops, o)
	}
	return ops
}

// levels are the words for levels, by kind.
var levels = [...]string{Local: "local", Majority: "majority", All: "all"}

// quiet and refused are the words for updates without a waiter.
const quiet, refused, direct = "quiet", "refused", "direct"

// opsText formats operations for parseOps.
func opsText(ops []op) string {
	s := make([]string, len(ops))
	for i, o := range ops {
		s[i] = o.String()
	}
	return strings.Join(s, ", ")
}

// parseOps parses operations like "add s0/a 5, drop c1/b 0".
func parseOps(words []string) (ops []op, err error) {
	for text := range strings.SplitSeq(strings.Join(words, " "), ", ") {
		f := strings.Fields(text)
		if len(f) != 3 {
			return nil, fmt.Errorf("operation %q must be KIND KEY/PART NUMBER", text)
		}
		kind := slices.Index(opKinds[:], f[0])
		key, sub, _ := strings.Cut(f[1], "/")
		value, err := strconv.ParseInt(f[2], 10, 64)
		if kind < 0 || err != nil || key == "" || kinds[key[0]] == nil {
			return nil, fmt.Errorf("operation %q: kinds are %v, keys begin with one of %s", text,
				opKinds, letters())
		}
		ops = append(ops, op{kind: opKind2(kind), key: key, sub: sub, value: value})
	}
	return ops, nil
}

// perform carries the operations out through the typed values, as a program would.
func perform(t *history.Txn, ops []op) error {
	_, err := carryOut(t, ops)
	return err
}

// carryOut is perform; it also returns the effects, for the specification.
func carryOut(t *history.Txn, ops []op) (does []effectOf, err error) {
	w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
	defer end()
	for _, o := range ops {
		var e effectOf
		switch k := kinds[o.key[0]]; {
		case o.kind == opDelete:
			t.Clear(o.key)
			e = resetOf("")
		case k == nil:
			return nil, fmt.Errorf("no type for key %q", o.key)
		default:
			if e, err = k.do(t, w, o); err != nil {
				return nil, err
			}
		}
		e.key, e.stamp = o.key, t.Stamp()
		does = append(does, e)
	}
	return does, w.Err()
}

func edit[T crdt.Value[T]](t *history.Txn, w *crdt.Writer, key string, empty T,
	change func(*T)) error {
	base := t.Get(key)
	v := empty
	if err := hosted.Load(&v, base, t.Seen()); err != nil {
		return err
	}
	change(&v)
	next, err := hosted.Save(w, base, &v)
	if err != nil {
		return err
	}
	t.Put(key, next)
	return nil
}

// idle reports whether an update of a replica, which did these things, has no net effect.
func idle(c *Core, t *history.Txn, does []effectOf) bool {
	for _, e := range does {
		was, _ := c.Keys().Get(e.key)
		ch, err := causal.Between(was.Store, t.Get(e.key), t.Dot())
		if err != nil || !ch.Empty() {
			return false
		}
	}
	return !c.Gathers()
}
