package core

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// Every type of package crdt, as used in the histories: the operations on a value, their meaning
// for the specification, and what a user sees in it.

type (
	set       = crdt.ORSet[string]
	counters  = crdt.ORMap[string, crdt.PNCounter]
	registers = crdt.LWWMap[string, int64]
	nested    = crdt.ORMap[string, crdt.ORMap[string, crdt.GCounter]]
	tags      = crdt.ORMultiMap[string, string]
	records   = crdt.Record[struct {
		Name  crdt.LWWRegister[string]
		Tags  crdt.ORSet[string]
		Votes crdt.PNCounter
	}]
)

// kind is a type. The first letter of a key is its kind.
type kind struct {
	verbs []opKind2
	spec  func([]put) (string, bool)
	do    func(t *history.Txn, w *crdt.Writer, o op) (effectOf, error)
	show  func(s causal.Store) (map[string]string, error)
}

// none is the effect of an operation that changes nothing.
var none effectOf

func putIn(cell string) effectOf { return effectOf{cell: cell, put: true} }
func setTo(cell, text string) effectOf {
	return effectOf{cell: cell, text: text, put: true, over: true}
}
func countIn(cell string, n int64) effectOf { return effectOf{cell: cell, amount: n, put: true} }
func resetOf(cell string) effectOf          { return effectOf{cell: cell, reset: true} }

// alone shows a value without parts, if it exists.
func alone(there bool, v any) map[string]string {
	if !there {
		return nil
	}
	return map[string]string{"": fmt.Sprint(v)}
}

// each shows the elements of a set.
func each(elems iter.Seq[string]) map[string]string {
	out := map[string]string{}
	for e := range elems {
		out[e] = "1"
	}
	return out
}

// kindOf returns the kind for a type.
func kindOf[T crdt.Value[T]](verbs []opKind2, spec func([]put) (string, bool),
	do func(*crdt.Writer, *T, op) effectOf, show func(T) map[string]string) *kind {
	return &kind{
		verbs: verbs, spec: spec,
		do: func(t *history.Txn, w *crdt.Writer, o op) (e effectOf, err error) {
			var empty T
			err = edit(t, w, o.key, empty, func(v *T) { e = do(w, v, o) })
			return e, err
		},
		show: showing(show),
	}
}

// showing returns what a user sees in the value of a store.
func showing[T crdt.Value[T]](show func(T) map[string]string) func(causal.Store) (map[string]string,
	error) {
	return func(s causal.Store) (map[string]string, error) {
		var empty T
		v := empty
		err := hosted.Load(&v, s, causal.Vector{})
		if err != nil {
			return nil, err
		}
		return show(v), nil
	}
}

// kinds are the types, by the first letter of their keys.
var kinds map[byte]*kind

func init() {
	sets := []opKind2{opAdd, opAdd, opAdd, opRemove, opRemove}
	counts := []opKind2{opCount, opCount, opCount, opDrop, opDrop}
	kinds = map[byte]*kind{
		's': kindOf(sets, present, func(w *crdt.Writer, v *set, o op) effectOf {
			if o.kind == opAdd {
				v.Add(w, o.sub)
				return putIn(o.sub)
			}
			v.Remove(w, o.sub)
			return resetOf(o.sub)
		}, func(v set) map[string]string { return each(v.All()) }),
		'g': kindOf([]opKind2{opAdd}, present, func(w *crdt.Writer, v *crdt.GSet[string],
			o op) effectOf {
			if v.Contains(o.sub) {
				v.Add(w, o.sub)
				return none
			}
			v.Add(w, o.sub)
			return putIn(o.sub)
		}, func(v crdt.GSet[string]) map[string]string { return each(v.All()) }),
		'w': kindOf(sets, unanimous, func(w *crdt.Writer, v *crdt.RWSet[string], o op) effectOf {
			if o.kind == opAdd {
				v.Add(w, o.sub)
				return setTo(o.sub, "")
			}
			v.Remove(w, o.sub)
			return setTo(o.sub, "no")
		}, func(v crdt.RWSet[string]) map[string]string { return each(v.All()) }),
		'e': kindOf(sets, present, func(w *crdt.Writer, v *crdt.EWFlag, o op) effectOf {
			if o.kind == opAdd {
				v.Enable(w)
				return putIn("")
			}
			v.Disable(w)
			return resetOf("")
		}, func(v crdt.EWFlag) map[string]string { return alone(v.Enabled(), 1) }),
		'd': kindOf(sets, unanimous, func(w *crdt.Writer, v *crdt.DWFlag, o op) effectOf {
			if o.kind == opAdd {
				v.Enable(w)
				return setTo("", "")
			}
			v.Disable(w)
			return setTo("", "no")
		}, func(v crdt.DWFlag) map[string]string { return alone(v.Enabled(), 1) }),
		'n': kindOf(counts, sum, func(w *crdt.Writer, v *crdt.GCounter, o op) effectOf {
			if o.kind == opCount {
				v.Add(w, uint64(o.value))
				return countIn("", o.value)
			}
			v.Reset(w)
			return resetOf("")
		}, func(v crdt.GCounter) map[string]string { return alone(true, v.Value()) }),
		'p': kindOf(counts, sum, func(w *crdt.Writer, v *crdt.PNCounter, o op) effectOf {
			if o.kind == opCount {
				v.Add(w, o.value-4)
				return effectOf{amount: o.value - 4, put: o.value != 4}
			}
			v.Reset(w)
			return resetOf("")
		}, func(v crdt.PNCounter) map[string]string { return alone(true, v.Value()) }),
		'b': kindOf([]opKind2{opCount, opCount, opTake, opGive}, sum, bounded,
			func(v crdt.BoundedCounter) map[string]string { return alone(true, v.Value()) }),
		'c': kindOf(counts, sum, func(w *crdt.Writer, v *counters, o op) effectOf {
			if o.kind == opCount {
				v.Update(w, o.sub, func(n *crdt.PNCounter) { n.Add(w, o.value) })
				return countIn(o.sub, o.value)
			}
			v.Remove(w, o.sub)
			return resetOf(o.sub)
		}, func(v counters) map[string]string {
			out := map[string]string{}
			for k, n := range v.All() {
				out[k] = strconv.FormatInt(n.Value(), 10)
			}
			return out
		}),
		'k': kindOf(counts, sum, func(w *crdt.Writer, v *crdt.PNCounterMap[string], o op) effectOf {
			if o.kind == opCount {
				v.Add(w, o.sub, o.value)
				return countIn(o.sub, o.value)
			}
			v.Remove(w, o.sub)
			return resetOf(o.sub)
		}, func(v crdt.PNCounterMap[string]) map[string]string { return numbers(v.All()) }),
		'r': kindOf([]opKind2{opWrite, opWrite, opDrop}, last, func(w *crdt.Writer, v *registers,
			o op) effectOf {
			if o.kind == opWrite {
				v.Set(w, o.sub, o.value)
				return setTo(o.sub, strconv.FormatInt(o.value, 10))
			}
			v.Remove(w, o.sub)
			return resetOf(o.sub)
		}, func(v registers) map[string]string { return numbers(v.All()) }),
		'l': kindOf([]opKind2{opWrite}, last, func(w *crdt.Writer, v *crdt.LWWRegister[int64],
			o op) effectOf {
			v.Set(w, o.value)
			return setTo("", strconv.FormatInt(o.value, 10))
		}, func(v crdt.LWWRegister[int64]) map[string]string {
			e, ok := v.Value()
			return alone(ok, e)
		}),
		'v': kindOf([]opKind2{opWrite, opWrite, opDrop}, every,
			func(w *crdt.Writer, v *crdt.MVRegister[string], o op) effectOf {
				if o.kind == opWrite {
					v.Set(w, strconv.FormatInt(o.value, 10))
					return setTo("", strconv.FormatInt(o.value, 10))
				}
				v.Clear(w)
				return resetOf("")
			}, func(v crdt.MVRegister[string]) map[string]string {
				return alone(v.Len() > 0, strings.Join(slices.Sorted(v.Values()), " "))
			}),
		'x': kindOf([]opKind2{opWrite}, largest, func(w *crdt.Writer, v *crdt.MaxRegister[int64],
			o op) effectOf {
			if had, ok := v.Value(); ok && had >= o.value {
				v.Set(w, o.value)
				return none
			}
			v.Set(w, o.value)
			return countIn("", o.value)
		}, func(v crdt.MaxRegister[int64]) map[string]string {
			e, ok := v.Value()
			return alone(ok, e)
		}),
		'm': kindOf([]opKind2{opWrite}, smallest, func(w *crdt.Writer, v *crdt.MinRegister[int64],
			o op) effectOf {
			if had, ok := v.Value(); ok && had <= o.value {
				v.Set(w, o.value)
				return none
			}
			v.Set(w, o.value)
			return countIn("", o.value)
		}, func(v crdt.MinRegister[int64]) map[string]string {
			e, ok := v.Value()
			return alone(ok, e)
		}),
		'u': kindOf([]opKind2{opAdd, opAdd, opAdd, opRemove, opDrop}, present,
			func(w *crdt.Writer, v *tags, o op) effectOf {
				elem := string(rune('a' + o.value%3))
				switch o.kind {
				case opAdd:
					v.Add(w, o.sub, elem)
					return putIn(o.sub + "/" + elem)
				case opRemove:
					v.Remove(w, o.sub, elem)
					return resetOf(o.sub + "/" + elem)
				}
				v.RemoveKeys(w, o.sub)
				return resetOf(o.sub)
			}, func(v tags) map[string]string {
				out := map[string]string{}
				for k, e := range v.All() {
					out[k+"/"+e] = "1"
				}
				return out
			}),
		'o': kindOf([]opKind2{opCount, opCount, opCount, opRemove, opDrop}, sum,
			func(w *crdt.Writer, v *nested, o op) effectOf {
				inner := string(rune('a' + o.value%3))
				switch o.kind {
				case opCount:
					v.Update(w, o.sub, func(in *crdt.ORMap[string, crdt.GCounter]) {
						in.Update(w, inner, func(n *crdt.GCounter) { n.Add(w, uint64(o.value)) })
					})
					return countIn(o.sub+"/"+inner, o.value)
				case opRemove:
					v.Update(w, o.sub, func(in *crdt.ORMap[string, crdt.GCounter]) {
						in.Remove(w, inner)
					})
					return resetOf(o.sub + "/" + inner)
				}
				v.Remove(w, o.sub)
				return resetOf(o.sub)
			}, func(v nested) map[string]string {
				out := map[string]string{}
				for k, in := range v.All() {
					for i, n := range in.All() {
						out[k+"/"+i] = strconv.FormatUint(n.Value(), 10)
					}
				}
				return out
			}),
		't': kindOf([]opKind2{opWrite, opAdd, opAdd, opCount, opCount, opRemove, opDrop}, partOf,
			doRecord, showRecord),
		'y': kindOf([]opKind2{opWrite}, merged, func(w *crdt.Writer, v *versions,
			_ op) effectOf {
			*v = v.next(causal.Replica(w.Replica()))
			return setTo("", v.String())
		}, func(v versions) map[string]string { return alone(v.Len() > 0, v.String()) }),
		'z': kindOf(nil, present, func(w *crdt.Writer, v *crdt.GSet[string], o op) effectOf {
			v.Add(w, o.sub)
			return putIn(o.sub)
		}, func(v crdt.GSet[string]) map[string]string { return each(v.All()) }),
	}
}

// bounded changes a counter within the rights that its replica has.
func bounded(w *crdt.Writer, v *crdt.BoundedCounter, o op) effectOf {
	n := uint64(o.value)
	switch may := v.Rights(w.Replica()) >= n; {
	case o.kind == opCount:
		v.Add(w, n)
		return countIn("", o.value)
	case o.kind == opTake && may:
		v.Sub(w, n)
		return countIn("", -o.value)
	case o.kind == opGive && may:
		v.Transfer(w, crdt.ReplicaID(1000+n), n)
		return countIn("", 0)
	}
	return none
}

// partOf shows a part of a record.
func partOf(puts []put) (string, bool) {
	switch cell, _, _ := strings.Cut(puts[0].effect().cell, "/"); cell {
	case "name":
		return last(puts)
	case "votes":
		n, _ := sum(puts)
		return n, n != "0"
	}
	return present(puts)
}

func doRecord(w *crdt.Writer, v *records, o op) effectOf {
	switch o.kind {
	case opWrite:
		v.V.Name.Set(w, o.sub)
		return setTo("name", o.sub)
	case opAdd:
		v.V.Tags.Add(w, o.sub)
		return putIn("tags/" + o.sub)
	case opRemove:
		v.V.Tags.Remove(w, o.sub)
		return resetOf("tags/" + o.sub)
	case opCount:
		v.V.Votes.Add(w, o.value)
		return countIn("votes", o.value)
	}
	v.V.Votes.Reset(w)
	return resetOf("votes")
}

func showRecord(v records) map[string]string {
	out := map[string]string{}
	if name, ok := v.V.Name.Value(); ok {
		out["name"] = name
	}
	for e := range v.V.Tags.All() {
		out["tags/"+e] = "1"
	}
	if n := v.V.Votes.Value(); n != 0 {
		out["votes"] = strconv.FormatInt(n, 10)
	}
	return out
}

func numbers(all iter.Seq2[string, int64]) map[string]string {
	out := map[string]string{}
	for k, n := range all {
		out[k] = strconv.FormatInt(n, 10)
	}
	return out
}

// versions is a user-defined type: the join of vectors.
type versions struct{ causal.Vector }

func (v versions) next(r causal.Replica) versions {
	return versions{v.With(causal.Dot{Replica: r, N: v.Get(r) + 1})}
}

func (v versions) Merge(o versions) versions { return versions{v.Join(o.Vector)} }

func (v versions) AppendBinary(dst []byte) ([]byte, error) {
	return causal.AppendState(dst, causal.Store{}, v.Vector)
}

func (v versions) Decode(src []byte) (versions, error) {
	_, seen, err := causal.ParseValue(src)
	return versions{seen}, err
}

func (v versions) String() string {
	of := map[string]uint64{}
	for d := range v.All() {
		of[strconv.FormatUint(uint64(d.Replica), 10)] = d.N
	}
	return vectorText(of)
}

// shown returns what a user sees in a state, in the form of the specification.
func shown(keys history.Keys) (string, error) {
	var b strings.Builder
	for key, h := range keys.All() {
		text, err := shownAt(key, h.Store)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// shownAt returns what a user sees under a key.
func shownAt(key string, s causal.Store) (string, error) {
	k := kinds[key[0]]
	if k == nil || s.Empty() {
		return "", nil
	}
	cells, err := k.show(s)
	if err != nil {
		return "", err
	}
	return lines(key, cells), nil
}

// letters returns the letters of the kinds, in order.
func letters() []byte { return slices.Sorted(maps.Keys(kinds)) }
