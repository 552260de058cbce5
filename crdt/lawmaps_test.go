package crdt_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/testkit/crdttest"
)

func TestLaws_LWWMap(t *testing.T) {
	type m = crdt.LWWMap[string, string]
	crdttest.Run(t, crdttest.Type[m]{
		Spec:     crdttest.Last,
		MaxBytes: bytesOf(3*14, 3*28),
		Change: func(d *draw, w *crdt.Writer, v *m) []effect {
			k, e := d.Letter("key"), d.Letter("element")
			switch d.Int("op", 0, 6) {
			case 0:
				v.Clear(w)
				return crdttest.Reset("")
			case 1, 2:
				v.Remove(w, k)
				return crdttest.Reset(k)
			}
			v.Set(w, k, e)
			return crdttest.Set(k, e)
		},
		Show: func(v m) map[string]string { return sized(maps.Collect(v.All()), v.Len()) },
	})
}

func TestLaws_ORMapOfSets(t *testing.T) {
	type m = crdt.ORMap[string, crdt.ORSet[string]]
	crdttest.Run(t, crdttest.Type[m]{
		Spec:     crdttest.Present,
		MaxBytes: bytesOf(3*14, 3*22),
		Change: func(d *draw, w *crdt.Writer, v *m) (effects []effect) {
			k := d.Letter("key")
			switch d.Int("op", 0, 8) {
			case 0:
				v.Clear(w)
				return crdttest.Reset("")
			case 1, 2:
				v.Remove(w, k)
				return crdttest.Reset(k)
			}
			v.Update(w, k, func(s *crdt.ORSet[string]) { effects = changeSet(d, w, s, k) })
			return effects
		},
		Show: func(v m) map[string]string {
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

func TestLaws_ORMultiMap(t *testing.T) {
	type m = crdt.ORMultiMap[string, string]
	crdttest.Run(t, crdttest.Type[m]{
		Spec:     crdttest.Present,
		MaxBytes: bytesOf(3*14, 3*22),
		Change: func(d *draw, w *crdt.Writer, v *m) (effects []effect) {
			k, e := d.Letter("key"), d.Letter("element")
			switch d.Int("op", 0, 8) {
			case 0:
				v.Clear(w)
				return crdttest.Reset("")
			case 1:
				v.RemoveKeys(w, k)
				return crdttest.Reset(k)
			case 2, 3:
				v.Remove(w, k, e)
				return crdttest.Reset(k + e)
			case 4:
				f := d.Letter("second")
				for old := range v.Get(k).All() {
					if old != e && old != f {
						effects = append(effects, crdttest.Reset(k+old)...)
					}
				}
				for _, x := range []string{e, f} {
					if !v.Contains(k, x) {
						effects = append(effects, crdttest.Put(k+x, "")...)
					}
				}
				v.Set(w, k, e, f)
				return effects
			}
			v.Add(w, k, e)
			return crdttest.Put(k+e, "")
		},
		Show: func(v m) map[string]string {
			out := map[string]string{}
			for k, e := range v.All() {
				out[k+e] = "in"
			}
			if n := len(slices.Collect(v.Keys())); n != v.Len() {
				out["len"] = fmt.Sprint(v.Len())
			}
			return out
		},
	})
}

func TestLaws_PNCounterMap(t *testing.T) {
	type m = crdt.PNCounterMap[string]
	crdttest.Run(t, crdttest.Type[m]{
		Spec: crdttest.Sum,
		// a slot and a mark for each replica and key
		MaxBytes: func(int) int { return 3*14 + 3*3*(24+24) },
		Change: func(d *draw, w *crdt.Writer, v *m) []effect {
			k := d.Letter("key")
			switch d.Int("op", 0, 8) {
			case 0:
				v.Clear(w)
				return crdttest.Reset("")
			case 1, 2:
				v.Remove(w, k)
				return crdttest.Reset(k)
			}
			n := amountOf(d)
			v.Add(w, k, n)
			return crdttest.Count(k, n)
		},
		Show: func(v m) map[string]string {
			out := map[string]string{}
			for k, n := range v.All() {
				out[k] = fmt.Sprint(n)
			}
			return sized(out, v.Len())
		},
	})
}

func TestLaws_NestedMaps(t *testing.T) {
	type inner = crdt.ORMap[string, crdt.GCounter]
	type m = crdt.ORMap[string, inner]
	crdttest.Run(t, crdttest.Type[m]{
		Spec:     crdttest.Sum,
		MaxBytes: slotsAndMarks(9),
		Change: func(d *draw, w *crdt.Writer, v *m) []effect {
			k, l := d.Letter("outer"), d.Letter("inner")
			switch d.Int("op", 0, 9) {
			case 0:
				v.Remove(w, k)
				return crdttest.Reset(k)
			case 1, 2:
				v.Update(w, k, func(i *inner) { i.Remove(w, l) })
				return crdttest.Reset(k + l)
			case 3:
				v.Update(w, k, func(i *inner) { i.Clear(w) })
				return crdttest.Reset(k)
			}
			n := d.Int("n", 1, 300)
			v.Update(w, k, func(i *inner) {
				i.Update(w, l, func(c *crdt.GCounter) { c.Add(w, uint64(n)) })
			})
			return crdttest.Count(k+l, int64(n))
		},
		Show: func(v m) map[string]string {
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

// Removing a key resets the flags, registers and remove-wins sets under it by what the removal has
// seen.
func TestLaws_ORMapOfFlagsRegistersAndSets(t *testing.T) {
	t.Run("DWFlag", func(t *testing.T) {
		type m = crdt.ORMap[string, crdt.DWFlag]
		testInMap(t, crdttest.Unanimous, func(d *draw, w *crdt.Writer, v *m,
			k string) (effects []effect) {
			v.Update(w, k, func(f *crdt.DWFlag) {
				if d.Bool("off") {
					f.Disable(w)
					effects = crdttest.Set(k, crdttest.No)
				} else {
					f.Enable(w)
					effects = crdttest.Set(k, "")
				}
			})
			return effects
		}, func(f crdt.DWFlag) (string, bool) { return "in", f.Enabled() })
	})
	t.Run("MVRegister", func(t *testing.T) {
		type m = crdt.ORMap[string, crdt.MVRegister[string]]
		testInMap(t, crdttest.Every, func(d *draw, w *crdt.Writer, v *m, k string) []effect {
			e := d.Letter("element")
			v.Update(w, k, func(r *crdt.MVRegister[string]) { r.Set(w, e) })
			return crdttest.Set(k, e)
		}, func(r crdt.MVRegister[string]) (out string, ok bool) {
			for e := range r.Values() {
				if ok {
					out += " "
				}
				out, ok = out+e, true
			}
			return out, ok
		})
	})
	t.Run("BoundedCounter", func(t *testing.T) { // exact under reset, which is not bounded
		type m = crdt.ORMap[string, crdt.BoundedCounter]
		testInMap(t, crdttest.Sum, func(d *draw, w *crdt.Writer, v *m,
			k string) (effects []effect) {
			n := uint64(d.Int("n", 1, 4))
			v.Update(w, k, func(c *crdt.BoundedCounter) {
				if d.Bool("down") && c.Rights(w.Replica()) >= n {
					c.Sub(w, n)
					effects = crdttest.Count(k, -int64(n))
				} else {
					c.Add(w, n)
					effects = crdttest.Count(k, int64(n))
				}
			})
			return effects
		}, func(c crdt.BoundedCounter) (string, bool) { return c.String(), true })
	})
}

func testInMap[V crdt.Value[V]](t *testing.T, spec crdttest.Spec,
	change func(*draw, *crdt.Writer, *crdt.ORMap[string, V], string) []effect,
	show func(V) (string, bool),
) {
	type m = crdt.ORMap[string, V]
	crdttest.Run(t, crdttest.Type[m]{
		Spec:     spec,
		MaxBytes: func(int) int { return 3*14 + 3*3*3*28 },
		Change: func(d *draw, w *crdt.Writer, v *m) []effect {
			k := d.Letter("key")
			if d.Int("op", 0, 3) == 0 {
				v.Remove(w, k)
				return crdttest.Reset(k)
			}
			return change(d, w, v, k)
		},
		Show: func(v m) map[string]string {
			out := map[string]string{}
			for k, x := range v.All() {
				if text, ok := show(x); ok {
					out[k] = text
				}
			}
			return out
		},
	})
}
