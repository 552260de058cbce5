package crdt_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// Bugs of other libraries, and of simpler designs, each reproduced by the shortest history.

type counters = crdt.ORMap[string, crdt.PNCounter]

func addTo(m *counters, w *crdt.Writer, key string, n int64) {
	m.Update(w, key, func(c *crdt.PNCounter) { c.Add(w, n) })
}

func valueOf(t *testing.T, m counters, key string) int64 {
	t.Helper()
	c, ok := m.Get(key)
	require.True(t, ok)
	return c.Value()
}

// A reset races an increment that continues the same slot. The increment counts without the earlier
// part of the chain, and so does everything added to the chain later, until the next reset.
func TestCounter_ResetRacesIncrement(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b counters
	addTo(&a, alice.Writer(), "k", 100)
	b = b.Merge(a)
	b.Remove(bob.Writer(), "k")
	addTo(&a, alice.Writer(), "k", 1)
	a, b = a.Merge(b), b.Merge(a)
	require.EqualValues(t, 1, valueOf(t, a, "k"))
	require.EqualValues(t, 1, valueOf(t, b, "k"))
	addTo(&a, alice.Writer(), "k", 5)
	b = b.Merge(a)
	require.EqualValues(t, 6, valueOf(t, b, "k"))
	b.Remove(bob.Writer(), "k")
	addTo(&a, alice.Writer(), "k", 7)
	require.EqualValues(t, 7, valueOf(t, a.Merge(b), "k"))
	require.Equal(t, encode(t, a.Merge(b)), encode(t, b.Merge(a)))
}

// An owner that resets its own slot and counts again starts from zero, whatever older marks say.
func TestCounter_OwnResetBeginsAnew(t *testing.T) {
	alice := crdt.NewReplica(1)
	var a counters
	addTo(&a, alice.Writer(), "k", 100)
	a.Remove(alice.Writer(), "k")
	addTo(&a, alice.Writer(), "k", 2)
	require.EqualValues(t, 2, valueOf(t, a, "k"))
}

// A remove that arrives before the add it saw must not be forgotten when the add comes (akka
// #22648).
func TestORSet_RemoveOvertakesAdd(t *testing.T) {
	alice, bob, carol := crdt.NewReplica(1), crdt.NewReplica(2), crdt.NewReplica(3)
	var a, b, c crdt.ORSet[string]
	add, err := crdt.Update(alice, &a, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		s.Add(w, "x")
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, crdt.Apply(&b, add))
	remove, err := crdt.Update(bob, &b, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		s.Remove(w, "x")
		return nil
	})
	require.NoError(t, err)
	require.ErrorIs(t, crdt.Apply(&c, remove), crdt.ErrGap)
	require.NoError(t, crdt.Apply(&c, add))
	require.NoError(t, crdt.Apply(&c, remove))
	require.NoError(t, crdt.Apply(&c, add)) // again, late
	require.Zero(t, c.Len())
	c.Add(carol.Writer(), "x")
	require.True(t, c.Merge(a).Contains("x"))
}

// A key that is removed and set again has none of its old contents, even at a replica that has not
// seen the remove yet (akka #27428).
func TestORMap_ContentsDoNotComeBack(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.ORMap[string, crdt.ORSet[string]]
	put := func(m *crdt.ORMap[string, crdt.ORSet[string]], w *crdt.Writer, e string) {
		m.Update(w, "k", func(s *crdt.ORSet[string]) { s.Add(w, e) })
	}
	put(&a, alice.Writer(), "old")
	b = b.Merge(a)
	a.Remove(alice.Writer(), "k")
	put(&a, alice.Writer(), "new")
	put(&b, bob.Writer(), "concurrent")
	for _, m := range []crdt.ORMap[string, crdt.ORSet[string]]{a.Merge(b), b.Merge(a)} {
		s, _ := m.Get("k")
		require.Equal(t, []string{"concurrent", "new"}, slices.Collect(s.All()))
	}
}

// If two writes have one stamp, every replica takes the write of the larger replica id, in any
// order of merges.
// Seen in GoAkt 94c8740c, akka 21610.
func TestLWWRegister_EqualStamps(t *testing.T) {
	now := func() uint64 { return 7 }
	alice, bob := crdt.NewReplicaWithClock(1, now), crdt.NewReplicaWithClock(2, now)
	var a, b crdt.LWWRegister[string]
	a.Set(alice.Writer(), "alice")
	b.Set(bob.Writer(), "bob")
	require.Equal(t, a.Stamp(), b.Stamp())
	for _, r := range []crdt.LWWRegister[string]{a.Merge(b), b.Merge(a)} {
		v, ok := r.Value()
		require.True(t, ok)
		require.Equal(t, "bob", v)
	}
}

// A write from a clock in the far future loses to a writer that has seen it, and affects only its
// own register.
func TestLWWRegister_FarFutureIsOverwritten(t *testing.T) {
	alice := crdt.NewReplicaWithClock(1, func() uint64 { return 1000 })
	mad := crdt.NewReplicaWithClock(2, func() uint64 { return math.MaxUint64 })
	var m, o crdt.LWWMap[string, string]
	o.Set(mad.Writer(), "poisoned", "theirs")
	o.SetAt(mad.Writer(), "end", "theirs", math.MaxUint64)
	m = m.Merge(o)
	m.Set(alice.Writer(), "poisoned", "mine")
	m.Set(alice.Writer(), "end", "mine")
	m.Set(alice.Writer(), "other", "mine")
	m = m.Merge(o)
	for k, v := range m.All() {
		require.Equal(t, "mine", v, k)
	}
	var r crdt.LWWRegister[string]
	r.Set(alice.Writer(), "x")
	require.EqualValues(t, 1000, r.Stamp()>>16)
}

func TestLWWRegister_SetAtKeepsTheLargerStamp(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var r crdt.LWWRegister[string]
	require.True(t, r.SetAt(bob.Writer(), "v5", 5))
	require.False(t, r.SetAt(alice.Writer(), "v4", 4))
	require.False(t, r.SetAt(alice.Writer(), "v5 too", 5))
	require.True(t, r.SetAt(bob.Writer(), "v5 again", 5))
	require.True(t, r.SetAt(alice.Writer(), "v6", 6))
	v, _ := r.Value()
	require.Equal(t, "v6", v)
}

// All adds of one update share its dot; removing one of them must leave the others.
func TestORSet_SiblingsOfOneDotSurvive(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.ORSet[string]
	a.Add(alice.Writer(), "x", "y", "z")
	b = b.Merge(a)
	b.Remove(bob.Writer(), "y")
	require.Equal(t, []string{"x", "z"}, slices.Collect(a.Merge(b).All()))
}

// Ten thousand adds and removes leave only the number of changes in the state (law 16).
func TestORSet_ChurnLeavesNothing(t *testing.T) {
	alice := crdt.NewReplica(1)
	var s crdt.ORSet[int]
	var m crdt.LWWMap[int, string]
	for i := range 10_000 {
		s.Add(alice.Writer(), i)
		s.Remove(alice.Writer(), i)
		m.Set(alice.Writer(), i, "x")
		m.Remove(alice.Writer(), i)
	}
	require.Less(t, len(encode(t, s)), 20)
	require.Less(t, len(encode(t, m)), 20)
}

// A map key whose value has another type gives a typed error and changes nothing (law 18).
func TestORMap_ChildOfAnotherType(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var sets crdt.ORMap[string, crdt.ORSet[string]]
	sets.Update(alice.Writer(), "k", func(s *crdt.ORSet[string]) { s.Add(alice.Writer(), "x") })
	sets = crdt.ORMap[string, crdt.ORSet[string]]{}
	w := alice.Writer()
	sets.Update(w, "k", func(s *crdt.ORSet[string]) { s.Add(w, "x") })
	require.NoError(t, w.Err())
	b, err := sets.AppendBinary(nil)
	require.NoError(t, err)
	m, err := counters{}.Decode(b)
	require.NoError(t, err)
	before := encode(t, m)
	w = bob.Writer()
	addTo(&m, w, "k", 1)
	require.ErrorIs(t, w.Err(), crdt.ErrType)
	require.Equal(t, before, encode(t, m))
	_, ok := m.Get("k")
	require.False(t, ok)
	require.Equal(t, 1, m.Len())
	require.Equal(t, 1, m.Remove(bob.Writer(), "k"))
}

func TestORMap_ForeignAndLateValuesAreRefused(t *testing.T) {
	alice := crdt.NewReplica(1)
	var m, other counters
	addTo(&other, alice.Writer(), "k", 3)
	addTo(&m, alice.Writer(), "k", 1)
	before := encode(t, m)
	theirs, _ := other.Get("k")
	mine, _ := m.Get("k")
	for name, v := range map[string]crdt.PNCounter{"zero": {}, "elsewhere": theirs,
		"snapshot": mine, "merged": mine.Merge(theirs)} {
		w := alice.Writer()
		m.Update(w, "k", func(c *crdt.PNCounter) { *c = v })
		require.ErrorIs(t, w.Err(), crdt.ErrInvalid, name)
		require.Equal(t, before, encode(t, m), name)
	}

	w := alice.Writer()
	mine.Add(w, 1)
	require.ErrorIs(t, w.Err(), crdt.ErrInvalid)

	var late *crdt.PNCounter
	w = alice.Writer()
	m.Update(w, "k", func(c *crdt.PNCounter) { late = c })
	late.Add(w, 1)
	require.ErrorIs(t, w.Err(), crdt.ErrInvalid)

	w = alice.Writer()
	m.Update(w, "k", func(c *crdt.PNCounter) { addTo(&m, w, "l", 1) })
	require.Error(t, w.Err())
}

func TestORMap_DepthIsBounded(t *testing.T) {
	type m1 = crdt.ORMap[int, crdt.GCounter]
	type m4 = crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, m1]]]
	type m8 = crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, m4]]]]
	type m12 = crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, m8]]]]
	type m16 = crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, m12]]]]
	type m17 = crdt.ORMap[int, m16]
	alice := crdt.NewReplica(1)
	down16 := func(w *crdt.Writer, v *m16) {
		to4 := func(v *m4) {
			v.Update(w, 0, func(v *crdt.ORMap[int, crdt.ORMap[int, m1]]) {
				v.Update(w, 0, func(v *crdt.ORMap[int, m1]) {
					v.Update(w, 0, func(v *m1) {
						v.Update(w, 0, func(c *crdt.GCounter) { c.Add(w, 1) })
					})
				})
			})
		}
		to8 := func(v *m8) {
			v.Update(w, 0, func(v *crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, m4]]]) {
				v.Update(w, 0, func(v *crdt.ORMap[int, crdt.ORMap[int, m4]]) {
					v.Update(w, 0, func(v *crdt.ORMap[int, m4]) { v.Update(w, 0, to4) })
				})
			})
		}
		to12 := func(v *m12) {
			v.Update(w, 0, func(v *crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, m8]]]) {
				v.Update(w, 0, func(v *crdt.ORMap[int, crdt.ORMap[int, m8]]) {
					v.Update(w, 0, func(v *crdt.ORMap[int, m8]) { v.Update(w, 0, to8) })
				})
			})
		}
		v.Update(w, 0, func(v *crdt.ORMap[int, crdt.ORMap[int, crdt.ORMap[int, m12]]]) {
			v.Update(w, 0, func(v *crdt.ORMap[int, crdt.ORMap[int, m12]]) {
				v.Update(w, 0, func(v *crdt.ORMap[int, m12]) { v.Update(w, 0, to12) })
			})
		})
	}
	var ok m16
	w := alice.Writer()
	down16(w, &ok)
	require.NoError(t, w.Err())
	require.Equal(t, `{0:{0:{0:{0:{0:{0:{0:{0:{0:{0:{0:{0:{0:{0:{0:{0:1}}}}}}}}}}}}}}}}`,
		ok.String())
	_, err := m16{}.Decode([]byte(encode(t, ok)))
	require.NoError(t, err)

	var deep m17
	w = alice.Writer()
	deep.Update(w, 0, func(v *m16) { down16(w, v) })
	require.ErrorIs(t, w.Err(), crdt.ErrTooLarge)
	require.Zero(t, deep.Len())
}

// Counters reject additions they cannot hold, and never wrap around.
func TestCounter_Overflow(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var g, h crdt.GCounter
	g.Add(alice.Writer(), math.MaxUint64)
	w := alice.Writer()
	g.Add(w, 1)
	require.ErrorIs(t, w.Err(), crdt.ErrOverflow)
	require.EqualValues(t, uint64(math.MaxUint64), g.Value())
	h.Add(bob.Writer(), 5)
	require.EqualValues(t, uint64(math.MaxUint64), g.Merge(h).Value())

	var p, q crdt.PNCounter
	p.Add(alice.Writer(), math.MinInt64)
	require.EqualValues(t, int64(math.MinInt64), p.Value())
	w = alice.Writer()
	p.Add(w, -1)
	require.ErrorIs(t, w.Err(), crdt.ErrOverflow)
	q.Add(bob.Writer(), -1)
	require.EqualValues(t, int64(math.MinInt64), p.Merge(q).Value())
	p.Add(alice.Writer(), math.MaxInt64)
	require.EqualValues(t, -1, p.Value())
	p.Add(alice.Writer(), math.MinInt64+1)
	w = alice.Writer()
	p.Add(w, math.MaxInt64)
	require.NoError(t, w.Err())
	w = alice.Writer()
	p.Add(w, math.MinInt64+2)
	require.ErrorIs(t, w.Err(), crdt.ErrOverflow) // gross total of the chain
	require.EqualValues(t, -1, p.Value())
}

// A failed or idle update changes nothing, and its writer is invalid afterwards.
func TestUpdate_ErrorsAndIdleUpdatesLeaveNothing(t *testing.T) {
	alice := crdt.NewReplica(1)
	var s crdt.ORSet[string]
	s.Add(alice.Writer(), "x")
	before := encode(t, s)
	full := errors.New("full")
	var kept *crdt.Writer
	d, err := crdt.Update(alice, &s, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		kept = w
		s.Add(w, "y")
		return full
	})
	require.ErrorIs(t, err, full)
	require.True(t, d.Empty())
	d, err = crdt.Update(alice, &s, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		s.Remove(w, "nothing")
		return nil
	})
	require.NoError(t, err)
	require.True(t, d.Empty())
	require.Equal(t, before, encode(t, s))
	require.Panics(t, func() { s.Add(kept, "z") })
}

// Two incarnations with one replica id would give two changes the same name.
func TestReplica_UsedIdIsRefused(t *testing.T) {
	first, second := crdt.NewReplica(1), crdt.NewReplica(1)
	var s crdt.ORSet[string]
	s.Add(first.Writer(), "a")
	s.Add(first.Writer(), "b")
	w := second.Writer()
	s.Add(w, "c")
	require.ErrorIs(t, w.Err(), crdt.ErrInvalid)
	_, err := crdt.Update(second, &s, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		s.Add(w, "c")
		return nil
	})
	require.ErrorIs(t, err, crdt.ErrInvalid)
	require.Panics(t, func() { crdt.NewReplica(0) })
}

func TestApply_DeltaOfAnotherTypeIsRefused(t *testing.T) {
	alice := crdt.NewReplica(1)
	var n crdt.PNCounter
	d, err := crdt.Update(alice, &n, func(w *crdt.Writer, n *crdt.PNCounter) error {
		n.Add(w, 1)
		return nil
	})
	require.NoError(t, err)
	var s crdt.ORSet[string]
	require.ErrorIs(t, crdt.Apply(&s, d), crdt.ErrType)
	_, err = crdt.Update(alice, &n, func(_ *crdt.Writer, n *crdt.PNCounter) error {
		*n = crdt.PNCounter{}
		return nil
	})
	require.ErrorIs(t, err, crdt.ErrInvalid)
}
