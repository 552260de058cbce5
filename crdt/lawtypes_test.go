package crdt_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/testkit/crdttest"
)

// The laws of every type, checked in random histories; see package crdttest.

type (
	draw   = crdttest.Draw
	effect = crdttest.Effect
)

// cell returns the cells of a value with a single cell.
func cell(there bool, v any) map[string]string {
	if !there {
		return map[string]string{}
	}
	return map[string]string{"": fmt.Sprint(v)}
}

// in returns the cells of a set.
func in(all iter.Seq[string], n int) map[string]string {
	out := map[string]string{}
	for e := range all {
		out[e] = "in"
	}
	return sized(out, n)
}

// sized adds a cell if Len is wrong.
func sized(out map[string]string, n int) map[string]string {
	if n != len(out) {
		out["len"] = fmt.Sprint(n)
	}
	return out
}

// amountOf draws a number other than 0.
func amountOf(d *draw) int64 {
	n := int64(d.Int("n", 1, 300))
	if d.Bool("down") {
		return -n
	}
	return n
}

// bytesOf bounds an encoding by its cost for three replicas (law 16).
func bytesOf(base, perCell int) func(int) int {
	return func(cells int) int { return base + perCell*cells }
}

// slotsAndMarks bounds counters by a slot and a mark for each replica and each counter that ever
// existed, since a value used alone keeps its marks.
func slotsAndMarks(counters int) func(int) int {
	return func(int) int { return 3*14 + counters*3*(24+28) }
}

func TestLaws_GCounter(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.GCounter]{
		Spec:     crdttest.Sum,
		MaxBytes: slotsAndMarks(1),
		Change: func(d *draw, w *crdt.Writer, c *crdt.GCounter) []effect {
			if d.Int("op", 0, 5) == 0 {
				c.Reset(w)
				return crdttest.Reset("")
			}
			n := d.Int("n", 1, 300)
			c.Add(w, uint64(n))
			return crdttest.Count("", int64(n))
		},
		Show: func(c crdt.GCounter) map[string]string {
			return counted(c.String(), c.Value() != 0 || slots(c) > 0)
		},
	})
}

func TestLaws_PNCounter(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.PNCounter]{
		Spec:     crdttest.Sum,
		MaxBytes: slotsAndMarks(1),
		Change: func(d *draw, w *crdt.Writer, c *crdt.PNCounter) []effect {
			if d.Int("op", 0, 5) == 0 {
				c.Reset(w)
				return crdttest.Reset("")
			}
			n := amountOf(d)
			c.Add(w, n)
			return crdttest.Count("", n)
		},
		Show: func(c crdt.PNCounter) map[string]string {
			return counted(c.String(), c.Value() != 0 || slots(c) > 0)
		},
	})
}

func counted(text string, there bool) map[string]string { return cell(there, text) }

// The bounded counter equals its sum and is never below zero in any replica, although two of three
// replicas subtract.
func TestLaws_BoundedCounter(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.BoundedCounter]{
		Spec:     crdttest.Sum,
		MaxBytes: func(int) int { return 40 + 9*45 },
		Change: func(d *draw, w *crdt.Writer, c *crdt.BoundedCounter) []effect {
			n, have := uint64(d.Int("n", 1, 4)), c.Rights(w.Replica())
			switch op := d.Int("op", 0, 3); {
			case op == 0 && n <= have:
				c.Transfer(w, crdt.ReplicaID(d.Int("to", 1, 3)), n)
				return nil
			case op == 1 && n <= have:
				c.Sub(w, n)
				return crdttest.Count("", -int64(n))
			}
			c.Add(w, n)
			return crdttest.Count("", int64(n))
		},
		Show: func(c crdt.BoundedCounter) map[string]string {
			var rights uint64
			for r := range crdt.ReplicaID(4) {
				rights += c.Rights(r)
			}
			if c.Value() < 0 || rights != uint64(c.Value()) {
				return cell(true, fmt.Sprintf("%v with %d rights", c, rights))
			}
			return cell(slots(c) > 0, c)
		},
	})
}

// A delta of a remove merged otherwise than the state: akka 22631, 22648, 22668.
func TestLaws_ORSet(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.ORSet[string]]{
		Spec:     crdttest.Present,
		MaxBytes: bytesOf(3*14, 3*14),
		Change: func(d *draw, w *crdt.Writer, s *crdt.ORSet[string]) []effect {
			return changeSet(d, w, s, "")
		},
		Show: func(s crdt.ORSet[string]) map[string]string { return in(s.All(), s.Len()) },
	})
}

// changeSet changes a set whose cells begin with at.
func changeSet(d *draw, w *crdt.Writer, s *crdt.ORSet[string], at string) []effect {
	e := d.Letter("element")
	switch d.Int("op", 0, 6) {
	case 0:
		s.Clear(w)
		return crdttest.Reset(at)
	case 1, 2:
		s.Remove(w, e)
		return crdttest.Reset(at + e)
	}
	s.Add(w, e)
	return crdttest.Put(at+e, "")
}

func TestLaws_GSet(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.GSet[string]]{
		Spec:     crdttest.Present,
		MaxBytes: bytesOf(3*14, 3*14),
		Change: func(d *draw, w *crdt.Writer, s *crdt.GSet[string]) []effect {
			e := d.Letter("element")
			s.Add(w, e)
			return crdttest.Put(e, "")
		},
		Show: func(s crdt.GSet[string]) map[string]string { return in(s.All(), s.Len()) },
	})
}

func TestLaws_RWSet(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.RWSet[string]]{
		Spec:     crdttest.Unanimous,
		MaxBytes: func(int) int { return 3*14 + 3*3*16 },
		Change: func(d *draw, w *crdt.Writer, s *crdt.RWSet[string]) (effects []effect) {
			e := d.Letter("element")
			switch d.Int("op", 0, 6) {
			case 0:
				for in := range s.All() {
					effects = append(effects, crdttest.Set(in, crdttest.No)...)
				}
				s.Clear(w)
				return effects
			case 1, 2, 3:
				s.Remove(w, e)
				return crdttest.Set(e, crdttest.No)
			}
			s.Add(w, e)
			return crdttest.Set(e, "")
		},
		Show: func(s crdt.RWSet[string]) map[string]string { return in(s.All(), s.Len()) },
	})
}

func TestLaws_RWSetForgets(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.RWSet[string]]{
		Spec:     crdttest.Unanimous,
		MaxBytes: func(int) int { return 3*14 + 3*3*16 },
		Change: func(d *draw, w *crdt.Writer, s *crdt.RWSet[string]) (effects []effect) {
			e := d.Letter("element")
			switch d.Int("op", 0, 4) {
			case 0:
				for _, x := range []string{"a", "b", "c"} {
					if !s.Contains(x) {
						effects = append(effects, crdttest.Reset(x)...)
					}
				}
				s.Forget(w)
				return effects
			case 1, 2:
				s.Remove(w, e)
				return crdttest.Set(e, crdttest.No)
			}
			s.Add(w, e)
			return crdttest.Set(e, "")
		},
		Show: func(s crdt.RWSet[string]) map[string]string { return in(s.All(), s.Len()) },
	})
}

func TestLaws_EWFlag(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.EWFlag]{
		Spec:     crdttest.Present,
		MaxBytes: bytesOf(3*14, 3*14),
		Change: func(d *draw, w *crdt.Writer, f *crdt.EWFlag) []effect {
			if d.Bool("off") {
				f.Disable(w)
				return crdttest.Reset("")
			}
			f.Enable(w)
			return crdttest.Put("", "")
		},
		Show: func(f crdt.EWFlag) map[string]string { return cell(f.Enabled(), "in") },
	})
}

func TestLaws_DWFlag(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.DWFlag]{
		Spec:     crdttest.Unanimous,
		MaxBytes: func(int) int { return 3*14 + 3*16 },
		Change: func(d *draw, w *crdt.Writer, f *crdt.DWFlag) []effect {
			if d.Bool("off") {
				f.Disable(w)
				return crdttest.Set("", crdttest.No)
			}
			f.Enable(w)
			return crdttest.Set("", "")
		},
		Show: func(f crdt.DWFlag) map[string]string { return cell(f.Enabled(), "in") },
	})
}

func TestLaws_LWWRegister(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.LWWRegister[string]]{
		Spec:     crdttest.Last,
		MaxBytes: bytesOf(3*14, 3*28),
		Change: func(d *draw, w *crdt.Writer, r *crdt.LWWRegister[string]) []effect {
			e := d.Letter("element")
			r.Set(w, e)
			return crdttest.Set("", e)
		},
		Show: func(r crdt.LWWRegister[string]) map[string]string {
			e, ok := r.Value()
			return cell(ok, e)
		},
	})
}

func TestLaws_LWWRegisterFirst(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.LWWRegister[string]]{
		Spec:     crdttest.First,
		MaxBytes: bytesOf(3*14, 3*28),
		Change: func(d *draw, w *crdt.Writer, r *crdt.LWWRegister[string]) []effect {
			e := d.Letter("element")
			if !r.SetFirst(w, e) {
				return nil
			}
			return crdttest.Put("", e)
		},
		Show: func(r crdt.LWWRegister[string]) map[string]string {
			e, ok := r.Value()
			return cell(ok, e)
		},
	})
}

func TestLaws_MVRegister(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.MVRegister[string]]{
		Spec:     crdttest.Every,
		MaxBytes: bytesOf(3*14, 3*16),
		Change: func(d *draw, w *crdt.Writer, r *crdt.MVRegister[string]) []effect {
			if d.Int("op", 0, 5) == 0 {
				r.Clear(w)
				return crdttest.Reset("")
			}
			e := d.Letter("element")
			r.Set(w, e)
			return crdttest.Set("", e)
		},
		Show: func(r crdt.MVRegister[string]) map[string]string {
			all := slices.Collect(r.Values())
			if e, ok := r.Value(); len(all) != r.Len() || ok != (len(all) == 1) ||
				ok && e != all[0] {
				return cell(true, "Values, Value and Len disagree")
			}
			return cell(len(all) > 0, strings.Join(all, " "))
		},
	})
}

func TestLaws_MaxRegister(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.MaxRegister[int]]{
		Spec:     crdttest.Largest,
		MaxBytes: bytesOf(3*14, 3*18),
		Change: func(d *draw, w *crdt.Writer, r *crdt.MaxRegister[int]) []effect {
			n := d.Int("n", -300, 300)
			r.Set(w, n)
			return crdttest.Count("", int64(n))
		},
		Show: func(r crdt.MaxRegister[int]) map[string]string {
			n, ok := r.Value()
			return cell(ok, n)
		},
	})
}

func TestLaws_MinRegister(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.MinRegister[int]]{
		Spec:     crdttest.Smallest,
		MaxBytes: bytesOf(3*14, 3*18),
		Change: func(d *draw, w *crdt.Writer, r *crdt.MinRegister[int]) []effect {
			n := d.Int("n", -300, 300)
			r.Set(w, n)
			return crdttest.Count("", int64(n))
		},
		Show: func(r crdt.MinRegister[int]) map[string]string {
			n, ok := r.Value()
			return cell(ok, n)
		},
	})
}
