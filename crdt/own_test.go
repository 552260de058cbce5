package crdt_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// highest is a user-defined type: three methods, no dots.
type highest struct{ n uint8 }

func (h highest) Merge(o highest) highest                 { return highest{max(h.n, o.n)} }
func (h highest) AppendBinary(dst []byte) ([]byte, error) { return append(dst, h.n), nil }
func (h highest) Decode(src []byte) (highest, error) {
	if len(src) != 1 {
		return h, crdt.ErrMalformed
	}
	return highest{src[0]}, nil
}

// labeled embeds a type of the package and is still a user-defined type.
type labeled struct {
	crdt.ORSet[string]
	label string
}

func (l labeled) Merge(o labeled) labeled {
	return labeled{l.ORSet.Merge(o.ORSet), max(l.label, o.label)}
}
func (l labeled) AppendBinary(dst []byte) ([]byte, error) {
	return l.ORSet.AppendBinary(append(append(dst, byte(len(l.label))), l.label...))
}
func (l labeled) Decode(src []byte) (labeled, error) {
	s, err := l.ORSet.Decode(src[1+src[0]:])
	return labeled{s, string(src[1 : 1+src[0]])}, err
}

// A user-defined type in a replicator has one atom for each concurrent write; they are merged on
// read.
func TestOwn_ConcurrentWritesMergeOnRead(t *testing.T) {
	a, b := &node{id: 1}, &node{id: 2}
	raise := func(n uint8) func(*crdt.Writer, *highest) error {
		return func(_ *crdt.Writer, h *highest) error { h.n = max(h.n, n); return nil }
	}
	e1, err := update(t, a, highest{}, raise(3))
	require.NoError(t, err)
	e2, err := update(t, b, highest{}, raise(5))
	require.NoError(t, err)
	a.apply(e2)
	b.apply(e1)
	require.Equal(t, a.store, b.store)
	h := highest{}
	err = hosted.Load(&h, a.store, a.seen)
	require.NoError(t, err)
	require.EqualValues(t, 5, h.n)
	idle, err := update(t, b, highest{}, func(*crdt.Writer, *highest) error { return nil })
	require.NoError(t, err)
	require.Len(t, idle.change.Adds, 1, "two atoms become one")
	_, err = crdt.Update(crdt.NewReplica(1), &h, func(*crdt.Writer, *highest) error { return nil })
	require.ErrorIs(t, err, crdt.ErrInvalid)
}

func TestOwn_InAMap(t *testing.T) {
	type m = crdt.ORMap[string, highest]
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	raise := func(v *m, w *crdt.Writer, n uint8) {
		v.Update(w, "k", func(h *highest) { h.n = max(h.n, n) })
	}
	var a, b m
	raise(&a, alice.Writer(), 3)
	raise(&b, bob.Writer(), 5)
	a, b = a.Merge(b), b.Merge(a)
	h, ok := a.Get("k")
	require.True(t, ok)
	require.EqualValues(t, 5, h.n)
	a.Remove(alice.Writer(), "k")
	require.Zero(t, a.Merge(b).Len())
	raise(&b, bob.Writer(), 4) // nothing new: the two atoms become one
	raise(&b, bob.Writer(), 9)
	h, _ = a.Merge(b).Get("k")
	require.EqualValues(t, 9, h.n)
}

func TestOwn_EmbeddingATypeOfThePackage(t *testing.T) {
	a := &node{id: 1}
	_, err := update(t, a, labeled{}, func(_ *crdt.Writer, l *labeled) error {
		l.label = "x"
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, a.store.Len())
	for path := range a.store.Prefix("") {
		require.Equal(t, causal.Own, causal.Tag(path[0]).Kind())
	}
	l := labeled{}
	err = hosted.Load(&l, a.store, a.seen)
	require.NoError(t, err)
	require.Equal(t, "x", l.label)
}

// Assigning an empty counter to a hosted one is rejected, since resets need their marks.
func TestSave_AssignedValueIsRefused(t *testing.T) {
	a := &node{id: 1}
	_, err := update(t, a, crdt.PNCounter{}, func(w *crdt.Writer, c *crdt.PNCounter) error {
		c.Add(w, 1)
		return nil
	})
	require.NoError(t, err)
	_, err = update(t, a, crdt.PNCounter{}, func(_ *crdt.Writer, c *crdt.PNCounter) error {
		*c = crdt.PNCounter{}
		return nil
	})
	require.ErrorIs(t, err, crdt.ErrInvalid)
}

// An ORMap of registers and an LWWMap share one state.
func TestLWWMap_IsAnORMapOfRegisters(t *testing.T) {
	a := &node{id: 1}
	_, err := update(t, a, crdt.LWWMap[string, int]{},
		func(w *crdt.Writer, m *crdt.LWWMap[string, int]) error {
			m.Set(w, "k", 7)
			return nil
		})
	require.NoError(t, err)
	m := crdt.ORMap[string, crdt.LWWRegister[int]]{}
	err = hosted.Load(&m, a.store, a.seen)
	require.NoError(t, err)
	r, ok := m.Get("k")
	require.True(t, ok)
	n, _ := r.Value()
	require.Equal(t, 7, n)
}

// Strings and JSON show contents in order, logs show only type and size.
func TestFormat(t *testing.T) {
	alice := crdt.NewReplica(1)
	w := alice.Writer()
	var m crdt.ORMap[int, crdt.LWWMap[string, []byte]]
	m.Update(w, 10, func(v *crdt.LWWMap[string, []byte]) {
		v.Set(w, "b", []byte("hi"))
		v.Set(w, "a", nil)
	})
	m.Update(w, -1, func(v *crdt.LWWMap[string, []byte]) { v.Set(w, "c", []byte{0}) })
	require.NoError(t, w.Err())
	b, err := json.Marshal(m)
	require.NoError(t, err)
	require.Equal(t, `{"-1":{"c":"AA=="},"10":{"a":"","b":"aGk="}}`, string(b))
	require.Equal(t, `{-1:{c:[0]} 10:{a:[] b:[104 105]}}`, m.String())

	var s crdt.ORSet[string]
	var g crdt.GCounter
	var p crdt.PNCounter
	var r crdt.LWWRegister[string]
	s.Add(w, "secret", "also secret")
	g.Add(w, 7)
	p.Add(w, -7)
	b, err = json.Marshal([]any{s, g, p, r})
	require.NoError(t, err)
	require.Equal(t, `[["also secret","secret"],7,-7,null]`, string(b))
	r.Set(w, "secret")
	require.Equal(t, "secret", r.String())

	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("values", "s", s, "m", m, "g", g, "p", p, "r", r)
	require.NotContains(t, out.String(), "secret")
	require.Contains(t, out.String(), "s.size=2 m.size=3")
}

// twoSets is a user-defined type made of types of the package.
type twoSets struct{ in, out crdt.GSet[string] }

func (s twoSets) Merge(o twoSets) twoSets { return twoSets{s.in.Merge(o.in), s.out.Merge(o.out)} }

func (s twoSets) AppendBinary(dst []byte) ([]byte, error) {
	in, err := s.in.AppendBinary(nil)
	if err != nil {
		return dst, err
	}
	return s.out.AppendBinary(append(append(dst, byte(len(in))), in...))
}

func (s twoSets) Decode(src []byte) (twoSets, error) {
	if len(src) == 0 || int(src[0]) > len(src)-1 {
		return s, crdt.ErrMalformed
	}
	in, err := s.in.Decode(src[1 : 1+src[0]])
	if err != nil {
		return s, err
	}
	out, err := s.out.Decode(src[1+src[0]:])
	return twoSets{in, out}, err
}

// The parts of a user-defined type keep their own vectors, even if the whole is in a replicator.
func TestOwn_PartsChangedByAHostedWriter(t *testing.T) {
	a, b := &node{id: 1}, &node{id: 2}
	add := func(e string) func(*crdt.Writer, *twoSets) error {
		return func(w *crdt.Writer, s *twoSets) error { s.in.Add(w, e); return nil }
	}
	e1, err := update(t, a, twoSets{}, add("x"))
	require.NoError(t, err)
	e2, err := update(t, b, twoSets{}, add("y"))
	require.NoError(t, err)
	a.apply(e2)
	b.apply(e1)
	e3, err := update(t, a, twoSets{}, func(w *crdt.Writer, s *twoSets) error {
		s.out.Add(w, "x")
		return nil
	})
	require.NoError(t, err)
	b.apply(e3)
	s := twoSets{}
	err = hosted.Load(&s, b.store, b.seen)
	require.NoError(t, err)
	require.Equal(t, "{x y} {x}", s.in.String()+" "+s.out.String())
}

// blob encodes as n bytes.
type blob struct{ n int }

func (b blob) Merge(o blob) blob { return blob{max(b.n, o.n)} }
func (b blob) AppendBinary(dst []byte) ([]byte, error) {
	return append(dst, make([]byte, b.n)...), nil
}
func (b blob) Decode(src []byte) (blob, error) { return blob{len(src)}, nil }

// A value that no replica accepts is rejected where it is made, in user-defined types and in
// records too.
func TestOwn_TooLargeIsRefused(t *testing.T) {
	grow := func(n int) func(*crdt.Writer, *blob) error {
		return func(_ *crdt.Writer, b *blob) error { b.n = n; return nil }
	}
	_, err := update(t, &node{id: 1}, blob{}, grow(causal.MaxState))
	require.NoError(t, err)
	_, err = update(t, &node{id: 1}, blob{}, grow(causal.MaxState+1))
	require.ErrorIs(t, err, crdt.ErrTooLarge)
	require.ErrorContains(t, err, "16777217 bytes, limit 16777216")
	_, err = update(t, &node{id: 1}, crdt.ORMap[string, blob]{},
		func(w *crdt.Writer, m *crdt.ORMap[string, blob]) error {
			m.Update(w, strings.Repeat("k", causal.MaxPath-2), func(b *blob) { b.n = 1 })
			return w.Err()
		})
	require.ErrorIs(t, err, crdt.ErrTooLarge)
}
