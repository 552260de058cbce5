package crdt_test

import (
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
)

func requireDiff[E any](t *testing.T, added, removed iter.Seq[E], wantAdded, wantRemoved []E) {
	t.Helper()
	require.Equal(t, wantAdded, slices.Collect(added))
	require.Equal(t, wantRemoved, slices.Collect(removed))
}

// Diff reports what was added and removed, not the changes in between.
func TestDiff_OfEveryTypeWithElements(t *testing.T) {
	alice := crdt.NewReplica(1)
	var g crdt.GSet[string]
	g.Add(alice.Writer(), "a")
	oldG := g
	g.Add(alice.Writer(), "a", "b")
	added, removed := g.Diff(oldG)
	requireDiff(t, added, removed, []string{"b"}, nil)

	var rw crdt.RWSet[string]
	rw.Add(alice.Writer(), "a", "b", "c")
	rw.Remove(alice.Writer(), "c")
	oldRW := rw
	require.Equal(t, 1, rw.Remove(alice.Writer(), "a", "never"))
	rw.Add(alice.Writer(), "b", "c")
	added, removed = rw.Diff(oldRW)
	requireDiff(t, added, removed, []string{"c"}, []string{"a"})

	var mv crdt.MVRegister[string]
	mv.Set(alice.Writer(), "a")
	oldMV := mv
	mv.Set(alice.Writer(), "b")
	added, removed = mv.Diff(oldMV)
	requireDiff(t, added, removed, []string{"b"}, []string{"a"})

	var mm crdt.ORMultiMap[string, int]
	mm.Add(alice.Writer(), "k", 1, 2)
	mm.Add(alice.Writer(), "gone", 9)
	oldMM := mm
	mm.Set(alice.Writer(), "k", 2, 3)
	require.Equal(t, 1, mm.RemoveKeys(alice.Writer(), "gone", "never"))
	plus, minus := mm.Diff(oldMM)
	require.Equal(t, map[string]int{"k": 3}, maps.Collect(plus))
	require.Equal(t, map[string]int{"k": 1, "gone": 9}, maps.Collect(minus))

	var cm crdt.PNCounterMap[string]
	cm.Add(alice.Writer(), "a", 1)
	cm.Add(alice.Writer(), "b", 1)
	oldCM := cm
	cm.Add(alice.Writer(), "a", -3)
	cm.Remove(alice.Writer(), "b")
	changed, gone := cm.Diff(oldCM)
	require.Equal(t, map[string]int64{"a": -2}, maps.Collect(changed))
	require.Equal(t, []string{"b"}, slices.Collect(gone))
	require.True(t, cm.Contains("a"))
	require.Equal(t, []string{"a"}, slices.Collect(cm.Keys()))
	cm.Clear(alice.Writer())
	require.Zero(t, cm.Len())
}

// Sets in a map change and diff like sets used alone.
func TestDiff_InsideAMap(t *testing.T) {
	alice := crdt.NewReplica(1)
	var m crdt.ORMap[string, crdt.RWSet[string]]
	w := alice.Writer()
	m.Update(w, "k", func(s *crdt.RWSet[string]) { s.Add(w, "a", "b") })
	old, _ := m.Get("k")
	w = alice.Writer()
	m.Update(w, "k", func(s *crdt.RWSet[string]) { s.Remove(w, "a"); s.Add(w, "c") })
	s, _ := m.Get("k")
	added, removed := s.Diff(old)
	requireDiff(t, added, removed, []string{"c"}, []string{"a"})
	require.Equal(t, 2, s.Len())
	s.Forget(alice.Writer()) // a copy: the writer rejects the change
	require.Equal(t, 2, s.Len())
}

func TestRWSet_ForgetFreesWhatWasRemoved(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.RWSet[int]
	a.Add(alice.Writer(), 1)
	b = b.Merge(a)
	a.Remove(alice.Writer(), 1, 2)
	a.Forget(alice.Writer())
	left, _ := parsed(t, a)
	require.Zero(t, left.Len(), "only the vector is left")
	require.False(t, b.Merge(a).Contains(1), "what it saw stays removed")
	b.Add(bob.Writer(), 2)
	require.True(t, b.Merge(a).Contains(2), "and no longer wins over what it did not see")
}

func TestBoundedCounter_Refusals(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var c crdt.BoundedCounter
	try := func(r *crdt.Replica, f func(w *crdt.Writer)) error {
		w := r.Writer()
		f(w)
		return w.Err()
	}
	require.NoError(t, try(alice, func(w *crdt.Writer) { c.Add(w, 5); c.Add(w, 0); c.Sub(w, 0) }))
	require.ErrorIs(t, try(bob, func(w *crdt.Writer) { c.Sub(w, 1) }), crdt.ErrBounds)
	require.ErrorIs(t, try(alice, func(w *crdt.Writer) { c.Sub(w, 6) }), crdt.ErrBounds)
	require.ErrorIs(t, try(alice, func(w *crdt.Writer) { c.Transfer(w, 2, 6) }), crdt.ErrBounds)
	require.ErrorIs(t, try(alice, func(w *crdt.Writer) { c.Transfer(w, 0, 1) }), crdt.ErrBounds)
	require.ErrorIs(t, try(alice, func(w *crdt.Writer) {
		c.Add(w, math.MaxInt64)
	}), crdt.ErrOverflow)
	require.NoError(t, try(alice, func(w *crdt.Writer) {
		c.Transfer(w, 1, 5)
	}), "to itself: nothing")
	require.NoError(t, try(alice, func(w *crdt.Writer) { c.Transfer(w, 2, 2) }))
	require.EqualValues(t, 5, c.Value())
	require.EqualValues(t, 3, c.Rights(1))
	require.EqualValues(t, 2, c.Rights(2))
	require.NoError(t, try(bob, func(w *crdt.Writer) { c.Sub(w, 1); c.Transfer(w, 3, 1) }))
	require.Zero(t, c.Rights(2))
	require.EqualValues(t, 1, c.Rights(3))
	require.EqualValues(t, 4, c.Value())
}

// Rights that a replica does not hold cannot be spent, whatever races (Balegas et al. 2015).
func TestBoundedCounter_TwoTakeTheLastOne(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.BoundedCounter
	a.Add(alice.Writer(), 1)
	b = b.Merge(a)
	w := bob.Writer()
	b.Sub(w, 1)
	require.ErrorIs(t, w.Err(), crdt.ErrBounds)
	a.Sub(alice.Writer(), 1)
	require.Zero(t, a.Merge(b).Value())
}

func TestMVRegister_EqualWritesAreOneValue(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.MVRegister[string]
	a.Set(alice.Writer(), "x")
	b.Set(bob.Writer(), "x")
	a = a.Merge(b)
	v, ok := a.Value()
	require.True(t, ok)
	require.Equal(t, "x", v)
	a.Clear(alice.Writer())
	require.Zero(t, a.Len())
}

func TestTypes_BadElementsRefuseTheUpdate(t *testing.T) {
	nan := math.NaN()
	for name, f := range map[string]func(w *crdt.Writer){
		"GSet":        func(w *crdt.Writer) { new(crdt.GSet[float64]).Add(w, nan) },
		"RWSet":       func(w *crdt.Writer) { new(crdt.RWSet[float64]).Add(w, nan) },
		"MVRegister":  func(w *crdt.Writer) { new(crdt.MVRegister[float64]).Set(w, nan) },
		"MaxRegister": func(w *crdt.Writer) { new(crdt.MaxRegister[float64]).Set(w, nan) },
		"MinRegister": func(w *crdt.Writer) { new(crdt.MinRegister[float64]).Set(w, nan) },
		"ORMultiMap": func(w *crdt.Writer) {
			new(crdt.ORMultiMap[string, float64]).Set(w, "k", nan)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := crdt.NewReplica(1).Writer()
			f(w)
			require.ErrorIs(t, w.Err(), crdt.ErrElement)
			f(w) // after an error nothing happens
		})
	}
	require.False(t, crdt.GSet[float64]{}.Contains(nan))
	require.False(t, crdt.RWSet[float64]{}.Contains(nan))
}

// Each type rejects the bytes of another type and leaves the receiver unchanged.
func TestTypes_DecodeOtherType(t *testing.T) {
	var s crdt.ORSet[string]
	s.Add(crdt.NewReplica(1).Writer(), "x")
	b := []byte(encode(t, s))
	for name, decode := range map[string]func() error{
		"GSet": func() error {
			_, err := crdt.NewGSet[string](nil).Decode(b)
			return err
		},
		"RWSet": func() error {
			_, err := crdt.NewRWSet[string](nil).Decode(b)
			return err
		},
		"MVRegister": func() error {
			_, err := crdt.NewMVRegister[string](nil).Decode(b)
			return err
		},
		"EWFlag": func() error { _, err := crdt.EWFlag{}.Decode(b); return err },
		"DWFlag": func() error { _, err := crdt.DWFlag{}.Decode(b); return err },
		"MaxRegister": func() error {
			_, err := crdt.NewMaxRegister[string](nil).Decode(b)
			return err
		},
		"MinRegister": func() error {
			_, err := crdt.NewMinRegister[string](nil).Decode(b)
			return err
		},
		"BoundedCounter": func() error { _, err := crdt.BoundedCounter{}.Decode(b); return err },
		"ORMultiMap": func() error {
			_, err := crdt.NewORMultiMap[string, string](nil, nil).Decode(b)
			return err
		},
		"PNCounterMap": func() error {
			_, err := crdt.NewPNCounterMap[string](nil).Decode(b)
			return err
		},
	} {
		require.ErrorIs(t, decode(), crdt.ErrType, name)
	}
	var hi crdt.MaxRegister[int]
	hi.Set(crdt.NewReplica(1).Writer(), 1)
	_, err := crdt.MinRegister[int]{}.Decode([]byte(encode(t, hi)))
	require.ErrorContains(t, err, "MaxRegister[int], wanted MinRegister[int]")
}

func TestFormat_Types(t *testing.T) {
	alice := crdt.NewReplica(1)
	w := alice.Writer()
	var (
		g  crdt.GSet[string]
		rw crdt.RWSet[string]
		mv crdt.MVRegister[string]
		ew crdt.EWFlag
		dw crdt.DWFlag
		hi crdt.MaxRegister[string]
		lo crdt.MinRegister[string]
		bc crdt.BoundedCounter
		mm crdt.ORMultiMap[string, string]
		cm crdt.PNCounterMap[string]
	)
	b, err := json.Marshal([]any{g, rw, mv, ew, dw, hi, lo, bc, mm, cm})
	require.NoError(t, err)
	require.Equal(t, `[[],[],[],false,false,null,null,0,{},{}]`, string(b))
	require.Equal(t, "empty empty", hi.String()+" "+lo.String())
	g.Add(w, "secret")
	rw.Add(w, "secret")
	mv.Set(w, "secret")
	ew.Enable(w)
	dw.Enable(w)
	hi.Set(w, "secret")
	lo.Set(w, "secret")
	bc.Add(w, 1)
	mm.Add(w, "secret", "secret")
	cm.Add(w, "secret", 1)
	require.NoError(t, w.Err())
	b, err = json.Marshal([]any{g, rw, mv, ew, dw, hi, lo, bc, mm, cm})
	require.NoError(t, err)
	require.Equal(t, `[["secret"],["secret"],["secret"],true,true,"secret","secret",1,{"secret":["secret"]},{"secret":1}]`, string(b))

	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("values", "g", g, "rw", rw, "mv", mv, "ew", ew,
		"dw", dw, "hi", hi, "lo", lo, "bc", bc, "mm", mm, "cm", cm)
	require.NotContains(t, out.String(), "secret")
	for _, want := range []string{
		"g.size=1", "rw.size=1", "mv.size=1", "ew.size=1", "dw.size=1", "hi.size=1", "lo.size=1",
		"bc.size=1", "mm.size=1", "cm.size=1",
	} {
		require.Contains(t, out.String(), want)
	}
}

// TestLWWMap_FirstWriteAndFormat covers the methods that no other test calls.
func TestLWWMap_FirstWriteAndFormat(t *testing.T) {
	alice := crdt.NewReplica(1)
	m := crdt.NewLWWMap[string, string](nil, nil)
	require.True(t, m.SetFirst(alice.Writer(), "k", "secret"))
	require.False(t, m.SetFirst(alice.Writer(), "k", "late"))
	require.True(t, m.Contains("k") && !m.Contains("other"))
	require.Equal(t, []string{"k"}, slices.Collect(m.Keys()))
	for range m.All() {
		break
	}
	_, ok := m.Get("other")
	require.False(t, ok)
	require.NotContains(t, m.LogValue().String(), "secret")
	r := crdt.NewLWWRegister(crdt.JSON[string]())
	require.Zero(t, r.Stamp())
	r.Set(alice.Writer(), "x")
	require.Equal(t, "x", r.String())
	require.Equal(t, "replica 0000000000000001", alice.String())
	require.Equal(t, "delta: nothing", crdt.Delta{}.String())
	d, err := crdt.ParseDelta(nil)
	require.NoError(t, err)
	require.True(t, d.Empty())
	require.Empty(t, deltaBytes(t, d))

	var mm crdt.ORMultiMap[string, int]
	mm.Add(alice.Writer(), "k", 1, 2)
	require.Equal(t, 1, mm.Len())
	require.Equal(t, []string{"k"}, slices.Collect(mm.Keys()))
	for range mm.All() {
		break
	}
	var cm crdt.PNCounterMap[string]
	cm.Add(alice.Writer(), "k", 1)
	for range cm.All() {
		break
	}
}

// A writer changes nothing after an error, or on a copy taken out of a map.
func TestTypes_RefusedWritersChangeNothing(t *testing.T) {
	alice := crdt.NewReplica(1)
	w := alice.Writer()
	w.Fail(crdt.ErrElement)
	var (
		or crdt.ORSet[string]
		rw crdt.RWSet[string]
		lw crdt.LWWRegister[string]
		ew crdt.EWFlag
		bc crdt.BoundedCounter
		gc crdt.GCounter
		m  crdt.ORMap[string, crdt.ORSet[string]]
	)
	require.Zero(t, or.Remove(w, "x"))
	or.Clear(w)
	rw.Clear(w)
	rw.Forget(w)
	require.Zero(t, rw.Remove(w, "x"))
	require.False(t, lw.SetFirst(w, "x") || lw.SetAt(w, "x", 1))
	lw.Set(w, "x")
	ew.Enable(w)
	ew.Disable(w)
	bc.Add(w, 1)
	bc.Sub(w, 1)
	gc.Add(w, 1)
	gc.Reset(w)
	require.Zero(t, m.Remove(w, "k"))
	m.Update(w, "k", func(*crdt.ORSet[string]) { t.Fatal("called") })
	for _, v := range []causal.Vector{seen(t, or), seen(t, rw), seen(t, lw), seen(t, ew),
		seen(t, bc), seen(t, gc), seen(t, m)} {
		require.Zero(t, v.Len())
	}
}
