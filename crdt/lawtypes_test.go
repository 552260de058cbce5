package crdt_test

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/concord-go/concord/crdt"
)

func TestLaws_GCounter(t *testing.T) {
	checkLaws(t, subject[crdt.GCounter]{
		kind: counted, zero: true,
		op: func(t *rapid.T, _ uint64) (effect, do[crdt.GCounter]) {
			n := rapid.Uint64Range(1, 300).Draw(t, "n")
			return effect{amount: int64(n)}, func(w *crdt.Writer, v *crdt.GCounter) { v.Add(w, n) }
		},
		observe: func(v crdt.GCounter) map[string]string { return number(v.Value() != 0, v.Value()) },
	})
}

func TestLaws_PNCounter(t *testing.T) {
	checkLaws(t, subject[crdt.PNCounter]{
		kind: counted, zero: true,
		op: func(t *rapid.T, _ uint64) (effect, do[crdt.PNCounter]) {
			n := rapid.Int64Range(-300, 300).Draw(t, "n")
			return effect{amount: n}, func(w *crdt.Writer, v *crdt.PNCounter) { v.Add(w, n) }
		},
		observe: func(v crdt.PNCounter) map[string]string { return number(v.Value() != 0, v.Value()) },
	})
}

func number(there bool, n any) map[string]string {
	if !there {
		return map[string]string{}
	}
	return map[string]string{"": fmt.Sprint(n)}
}

// setOp draws an operation on a set whose cells begin with at.
func setOp(t *rapid.T, at string) (effect, do[crdt.ORSet[string]]) {
	e := drawText(t, "element")
	switch rapid.IntRange(0, 6).Draw(t, "op") {
	case 0:
		return effect{cell: at, reset: true}, func(w *crdt.Writer, v *crdt.ORSet[string]) { v.Clear(w) }
	case 1, 2:
		return effect{cell: at + e, reset: true}, func(w *crdt.Writer, v *crdt.ORSet[string]) { v.Remove(w, e) }
	default:
		return effect{cell: at + e}, func(w *crdt.Writer, v *crdt.ORSet[string]) { v.Add(w, e) }
	}
}

func TestLaws_ORSet(t *testing.T) {
	checkLaws(t, subject[crdt.ORSet[string]]{
		op: func(t *rapid.T, _ uint64) (effect, do[crdt.ORSet[string]]) { return setOp(t, "") },
		observe: func(v crdt.ORSet[string]) map[string]string {
			out := map[string]string{}
			for e := range v.All() {
				out[e] = "in"
			}
			return out
		},
	})
}

func TestLaws_LWWRegister(t *testing.T) {
	checkLaws(t, subject[crdt.LWWRegister[string]]{
		kind: register,
		op: func(t *rapid.T, stamp uint64) (effect, do[crdt.LWWRegister[string]]) {
			e := drawText(t, "element")
			return effect{text: e, stamp: stamp}, func(w *crdt.Writer, v *crdt.LWWRegister[string]) { v.Set(w, e) }
		},
		observe: func(v crdt.LWWRegister[string]) map[string]string {
			e, ok := v.Value()
			return number(ok, e)
		},
	})
}

func TestLaws_LWWMap(t *testing.T) {
	type m = crdt.LWWMap[string, string]
	checkLaws(t, subject[m]{
		kind: register,
		op: func(t *rapid.T, stamp uint64) (effect, do[m]) {
			k, e := drawText(t, "key"), drawText(t, "element")
			switch rapid.IntRange(0, 6).Draw(t, "op") {
			case 0:
				return effect{reset: true}, func(w *crdt.Writer, v *m) { v.Clear(w) }
			case 1, 2:
				return effect{cell: k, reset: true}, func(w *crdt.Writer, v *m) { v.Remove(w, k) }
			default:
				return effect{cell: k, text: e, stamp: stamp}, func(w *crdt.Writer, v *m) { v.Set(w, k, e) }
			}
		},
		observe: func(v m) map[string]string {
			out := maps.Collect(v.All())
			return sized(out, v.Len())
		},
	})
}

// sized makes a wrong Len visible.
func sized(out map[string]string, n int) map[string]string {
	if n != len(out) {
		out["len"] = fmt.Sprint(n)
	}
	return out
}

func TestLaws_ORMapOfSets(t *testing.T) {
	type m = crdt.ORMap[string, crdt.ORSet[string]]
	checkLaws(t, subject[m]{
		op: func(t *rapid.T, _ uint64) (effect, do[m]) {
			k := drawText(t, "key")
			switch rapid.IntRange(0, 8).Draw(t, "op") {
			case 0:
				return effect{reset: true}, func(w *crdt.Writer, v *m) { v.Clear(w) }
			case 1, 2:
				return effect{cell: k, reset: true}, func(w *crdt.Writer, v *m) { v.Remove(w, k) }
			}
			x, deed := setOp(t, k)
			return x, func(w *crdt.Writer, v *m) {
				v.Update(w, k, func(s *crdt.ORSet[string]) { deed(w, s) })
			}
		},
		observe: func(v m) map[string]string {
			out, keys := map[string]string{}, 0
			for k, s := range v.All() {
				for e := range s.All() {
					out[k+e] = "in"
				}
				keys++
			}
			if keys != v.Len() {
				out["len"] = fmt.Sprint(v.Len())
			}
			return out
		},
	})
}

func TestLaws_ORMapOfCounters(t *testing.T) {
	type m = crdt.ORMap[string, crdt.PNCounter]
	checkLaws(t, subject[m]{
		kind: counted,
		op: func(t *rapid.T, _ uint64) (effect, do[m]) {
			k := drawText(t, "key")
			switch rapid.IntRange(0, 8).Draw(t, "op") {
			case 0:
				return effect{reset: true}, func(w *crdt.Writer, v *m) { v.Clear(w) }
			case 1, 2:
				return effect{cell: k, reset: true}, func(w *crdt.Writer, v *m) { v.Remove(w, k) }
			}
			n := rapid.Int64Range(1, 300).Draw(t, "n")
			if rapid.Bool().Draw(t, "down") {
				n = -n
			}
			return effect{cell: k, amount: n}, func(w *crdt.Writer, v *m) {
				v.Update(w, k, func(c *crdt.PNCounter) { c.Add(w, n) })
			}
		},
		observe: func(v m) map[string]string {
			out := map[string]string{}
			for k, c := range v.All() {
				out[k] = fmt.Sprint(c.Value())
			}
			return sized(out, v.Len())
		},
	})
}

func TestLaws_NestedMaps(t *testing.T) {
	type inner = crdt.ORMap[string, crdt.GCounter]
	type m = crdt.ORMap[string, inner]
	checkLaws(t, subject[m]{
		kind: counted,
		op: func(t *rapid.T, _ uint64) (effect, do[m]) {
			k, l := drawText(t, "outer"), drawText(t, "inner")
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0:
				return effect{cell: k, reset: true}, func(w *crdt.Writer, v *m) { v.Remove(w, k) }
			case 1, 2:
				return effect{cell: k + l, reset: true}, func(w *crdt.Writer, v *m) {
					v.Update(w, k, func(i *inner) { i.Remove(w, l) })
				}
			case 3:
				return effect{cell: k, reset: true}, func(w *crdt.Writer, v *m) {
					v.Update(w, k, func(i *inner) { i.Clear(w) })
				}
			}
			n := rapid.Uint64Range(1, 300).Draw(t, "n")
			return effect{cell: k + l, amount: int64(n)}, func(w *crdt.Writer, v *m) {
				v.Update(w, k, func(i *inner) {
					i.Update(w, l, func(c *crdt.GCounter) { c.Add(w, n) })
				})
			}
		},
		observe: func(v m) map[string]string {
			out := map[string]string{}
			for k, i := range v.All() {
				for l, c := range i.All() {
					out[k+l] = fmt.Sprint(c.Value())
				}
			}
			return out
		},
	})
}
