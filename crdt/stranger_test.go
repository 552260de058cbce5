package crdt_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// A peer with another codec of the same class writes bytes that do not decode here. Reads skip
// them, merges keep and pass them on, and the elements that decode stay visible.

// odd encodes numbers as one byte, and decodes only odd ones.
type odd struct{}

var errEven = errors.New("even")

func (odd) Append(dst []byte, n int) ([]byte, error) {
	if n < 0 {
		return dst, errEven
	}
	return append(dst, byte(n)), nil
}

func (odd) Decode(src []byte) (int, error) {
	if len(src) != 1 || src[0]%2 == 0 {
		return 0, errEven
	}
	return int(src[0]), nil
}

// anyByte also decodes what odd rejects.
type anyByte struct{ odd }

func (anyByte) Decode(src []byte) (int, error) { return int(src[0]), nil }

// here returns the value of a peer as decoded by this replica.
func here[T crdt.Value[T]](t *testing.T, empty, theirs T) T {
	t.Helper()
	v, err := empty.Decode([]byte(encode(t, theirs)))
	require.NoError(t, err)
	require.Equal(t, encode(t, theirs), encode(t, v), "what is passed over is kept")
	return v
}

func TestStranger_ElementsArePassedOver(t *testing.T) {
	w := crdt.NewReplica(1).Writer()
	or := crdt.NewORSet[int](anyByte{})
	or.Add(w, 1, 2, 3)
	set := here(t, crdt.NewORSet[int](odd{}), or)
	require.Equal(t, []int{1, 3}, slices.Collect(set.All()))
	require.Equal(t, 1, set.Remove(w, 2), "but it can be removed")
	added, removed := set.Diff(crdt.NewORSet[int](odd{}))
	require.Equal(t, []int{1, 3}, slices.Collect(added))
	require.Empty(t, slices.Collect(removed))

	mv := crdt.NewMVRegister[int](anyByte{})
	mv.Set(w, 2)
	got := here(t, crdt.NewMVRegister[int](odd{}), mv)
	_, ok := got.Value()
	require.False(t, ok)
	require.Empty(t, slices.Collect(got.Values()))

	lww := crdt.NewLWWRegister[int](anyByte{})
	lww.Set(w, 2)
	last := here(t, crdt.NewLWWRegister[int](odd{}), lww)
	_, ok = last.Value()
	require.False(t, ok)
	require.NotZero(t, last.Stamp())

	hi := crdt.NewMaxRegister[int](anyByte{})
	hi.Set(w, 2)
	_, ok = here(t, crdt.NewMaxRegister[int](odd{}), hi).Value()
	require.False(t, ok)
}

func TestStranger_KeysArePassedOver(t *testing.T) {
	alice := crdt.NewReplica(1)
	theirs := crdt.NewORMap[int, crdt.PNCounter](anyByte{}, crdt.PNCounter{})
	for k := range 4 {
		w := alice.Writer()
		theirs.Update(w, k, func(c *crdt.PNCounter) { c.Add(w, 1) })
	}
	empty := crdt.NewORMap[int, crdt.PNCounter](odd{}, crdt.PNCounter{})
	m := here(t, empty, theirs)
	require.Equal(t, []int{1, 3}, slices.Collect(m.Keys()))
	require.Equal(t, "{1:1 3:1}", m.String())
	require.True(t, m.Contains(2), "but they can be asked for by name")
	require.Equal(t, 4, m.Len())
	changed, removed := m.Diff(empty)
	n := 0
	for k := range changed {
		require.Contains(t, []int{1, 3}, k)
		n++
	}
	require.Equal(t, 2, n)
	require.Empty(t, slices.Collect(removed))
	_, removed = empty.Diff(m)
	require.Equal(t, []int{1, 3}, slices.Collect(removed))
	require.Equal(t, 2, m.Remove(alice.Writer(), 0, 2))
}

// A key that its codec rejects is in no map, and makes the update that uses it fail.
func TestStranger_KeysWithoutEncoding(t *testing.T) {
	m := crdt.NewORMap[int, crdt.PNCounter](odd{}, crdt.PNCounter{})
	_, ok := m.Get(-1)
	require.False(t, ok)
	require.False(t, m.Contains(-1))
	for _, change := range []func(w *crdt.Writer){
		func(w *crdt.Writer) { m.Remove(w, -1) },
		func(w *crdt.Writer) { m.Update(w, -1, func(*crdt.PNCounter) { t.Error("called") }) },
	} {
		w := crdt.NewReplica(1).Writer()
		change(w)
		require.ErrorIs(t, w.Err(), errEven)
		change(w) // after an error nothing happens
	}
	s := crdt.NewORSet[int](odd{})
	w := crdt.NewReplica(1).Writer()
	require.Zero(t, s.Remove(w, -1))
	require.ErrorIs(t, w.Err(), errEven)
	require.False(t, s.Contains(-1))
}

// voice is a string that cannot be marshaled as JSON.
type voice string

func (voice) MarshalJSON() ([]byte, error) { return nil, errEven }

func TestFormat_ErrorsOfElementsReachTheCaller(t *testing.T) {
	w := crdt.NewReplica(1).Writer()
	var s crdt.ORSet[voice]
	var m crdt.LWWMap[string, voice]
	var k crdt.LWWMap[voice, string]
	s.Add(w, "x")
	m.Set(w, "x", "x")
	k.Set(w, "x", "x")
	for _, v := range []any{s, m, k} {
		_, err := json.Marshal(v)
		require.ErrorIs(t, err, errEven)
	}
}

// A loop that breaks early stops the iteration.
func TestAll_EndsEarly(t *testing.T) {
	m, _ := voted(3)
	for range m.Keys() {
		break
	}
	for range m.All() {
		break
	}
	changed, _ := m.Diff(crdt.PNCounterMap[string]{})
	for range changed {
		break
	}
	_, removed := crdt.PNCounterMap[string]{}.Diff(m)
	n := 0
	for range removed {
		n++
		break
	}
	require.Equal(t, 1, n)
}
