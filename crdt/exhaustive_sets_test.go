package crdt_test

import (
	"slices"
	"testing"

	"github.com/concord-go/concord/crdt"
)

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func TestExhaustive_EWFlagInMap(t *testing.T) {
	type m = crdt.ORMap[int, crdt.EWFlag]
	s := &small[m]{
		add: func(w *crdt.Writer, v *m, key int, _ int64) {
			v.Update(w, key, func(f *crdt.EWFlag) { f.Enable(w) })
		},
		remove: func(w *crdt.Writer, v *m, key int) int { return v.Remove(w, key) },
		value: func(v *m, key int) int64 {
			f, _ := v.Get(key)
			return oneIf(f.Enabled())
		},
	}
	s.run(t, exhaustiveDepth())
}

func TestExhaustive_MultiMap(t *testing.T) {
	type m = crdt.ORMultiMap[int, string]
	s := &small[m]{
		add:    func(w *crdt.Writer, v *m, key int, _ int64) { v.Add(w, key, "x") },
		remove: func(w *crdt.Writer, v *m, key int) int { return v.Remove(w, key, "x") },
		value:  func(v *m, key int) int64 { return oneIf(v.Contains(key, "x")) },
	}
	s.run(t, exhaustiveDepth())
}

func TestExhaustive_PNCounterMap(t *testing.T) {
	type m = crdt.PNCounterMap[int]
	s := &small[m]{
		count:  true,
		add:    func(w *crdt.Writer, v *m, key int, n int64) { v.Add(w, key, n) },
		remove: func(w *crdt.Writer, v *m, key int) int { return v.Remove(w, key) },
		value:  func(v *m, key int) int64 { return v.Get(key) },
	}
	s.run(t, exhaustiveDepth())
}

// In a remove-wins set an element is present if it was added and each remove was seen by a later
// add.
func TestExhaustive_RWSet(t *testing.T) {
	s := &small[crdt.RWSet[int]]{
		rule: removeWins,
		add:  func(w *crdt.Writer, v *crdt.RWSet[int], elem int, _ int64) { v.Add(w, elem) },
		remove: func(w *crdt.Writer, v *crdt.RWSet[int], elem int) int {
			v.Remove(w, elem)
			return 1
		},
		value: func(v *crdt.RWSet[int], elem int) int64 { return oneIf(v.Contains(elem)) },
	}
	s.run(t, exhaustiveDepth()-1) // every remove is a step, even of an absent element
}

// An MVRegister holds the writes that no other write has seen.
func TestExhaustive_MVRegisterInMap(t *testing.T) {
	type m = crdt.ORMap[int, crdt.MVRegister[int64]]
	s := &small[m]{
		rule: concurrentWrites,
		add: func(w *crdt.Writer, v *m, key int, n int64) {
			v.Update(w, key, func(r *crdt.MVRegister[int64]) { r.Set(w, n) })
		},
		remove: func(w *crdt.Writer, v *m, key int) int { return v.Remove(w, key) },
		value: func(v *m, key int) (sum int64) {
			r, _ := v.Get(key)
			for n := range r.Values() {
				sum += n
			}
			return sum
		},
	}
	s.run(t, exhaustiveDepth())
}

// A disable-wins flag under each key is on if it was enabled and each disable was seen by a later
// enable.
func TestExhaustive_DWFlagInMap(t *testing.T) {
	type m = crdt.ORMap[int, crdt.DWFlag]
	s := &small[m]{
		rule: removeWins,
		add: func(w *crdt.Writer, v *m, key int, _ int64) {
			v.Update(w, key, func(f *crdt.DWFlag) { f.Enable(w) })
		},
		remove: func(w *crdt.Writer, v *m, key int) int {
			v.Update(w, key, func(f *crdt.DWFlag) { f.Disable(w) })
			return 1
		},
		value: func(v *m, key int) int64 {
			f, _ := v.Get(key)
			return oneIf(f.Enabled())
		},
	}
	s.run(t, exhaustiveDepth()-1)
}

// Among concurrent writes the one with the largest stamp wins, then the one of the largest replica.
func TestExhaustive_LWWMap(t *testing.T) {
	type m = crdt.LWWMap[int, int64]
	s := &small[m]{
		rule:   lastWrite,
		add:    func(w *crdt.Writer, v *m, key int, n int64) { v.Set(w, key, n) },
		remove: func(w *crdt.Writer, v *m, key int) int { return v.Remove(w, key) },
		value: func(v *m, key int) int64 {
			n, _ := v.Get(key)
			return n
		},
	}
	s.run(t, exhaustiveDepth())
}

// A record has a set and a counter: the first element is in the set, the second is the count.
func TestExhaustive_Record(t *testing.T) {
	type fields struct {
		Set   crdt.ORSet[int]
		Count crdt.PNCounter
	}
	type r = crdt.Record[fields]
	s := &small[r]{
		add: func(w *crdt.Writer, v *r, elem int, n int64) {
			if elem == 0 {
				v.V.Set.Add(w, 0)
			} else {
				v.V.Count.Add(w, n)
			}
		},
		remove: func(w *crdt.Writer, v *r, elem int) int {
			if elem == 0 {
				return v.V.Set.Remove(w, 0)
			}
			n := int(slots(v.V.Count))
			v.V.Count.Reset(w)
			return n
		},
		value: func(v *r, elem int) int64 {
			if elem == 0 {
				return oneIf(v.V.Set.Contains(0))
			}
			return v.V.Count.Value()
		},
	}
	s.rule = func(steps []smallStep, seen uint64, elem int) int64 {
		as := small[r]{steps: steps, count: elem == 1}
		return as.want(seen, elem)
	}
	s.run(t, exhaustiveDepth())
}

// lastWrite stamps the writes in sequence: each one above the stamps it replaces.
func lastWrite(steps []smallStep, seen uint64, elem int) int64 {
	best, at := int64(0), smallStep{replica: -1}
	for _, i := range last(steps, seen, elem) {
		if !steps[i].add {
			continue
		}
		if n := stamp(steps, i); n > best || n == best && steps[i].replica > at.replica {
			best, at = n, steps[i]
		}
	}
	if best == 0 {
		return 0
	}
	return at.amount()
}

func stamp(steps []smallStep, i int) int64 {
	n := int64(1)
	for _, j := range last(steps, steps[i].before, steps[i].elem) {
		if steps[j].add {
			n = max(n, stamp(steps, j)+1)
		}
	}
	return n
}

// last returns the steps on elem in seen that no other such step has seen.
func last(steps []smallStep, seen uint64, elem int) (out []int) {
	var past uint64
	for i, s := range steps {
		if seen>>i&1 == 1 && s.elem == elem {
			past |= s.before
		}
	}
	for i, s := range steps {
		if seen&^past>>i&1 == 1 && s.elem == elem {
			out = append(out, i)
		}
	}
	return out
}

func removeWins(steps []smallStep, seen uint64, elem int) int64 {
	l := last(steps, seen, elem)
	return oneIf(len(l) > 0 && !slices.ContainsFunc(l, func(i int) bool { return !steps[i].add }))
}

func concurrentWrites(steps []smallStep, seen uint64, elem int) (sum int64) {
	for _, i := range last(steps, seen, elem) {
		if steps[i].add {
			sum += steps[i].amount()
		}
	}
	return sum
}
