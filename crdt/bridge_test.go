package crdt_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// node is a replicator reduced to one key: it holds atoms and a vector, and knows no Go types.
type node struct {
	id    causal.Replica
	store causal.Store
	seen  causal.Vector
}

// event is the change made by a node's update, as sent to other nodes.
type event struct {
	dot    causal.Dot
	deps   causal.Vector
	change causal.Change
}

func update[T crdt.Value[T]](t *testing.T, n *node, empty T,
	modify func(w *crdt.Writer, v *T) error) (event, error) {
	t.Helper()
	d := causal.Dot{Replica: n.id, N: n.seen.Get(n.id) + 1}
	w, end := hosted.Writer[*crdt.Writer](d, d.N<<16)
	defer end()
	v := empty
	err := hosted.Load(&v, n.store, n.seen)
	if err != nil {
		return event{}, err
	}
	if err = errors.Join(modify(w, &v), w.Err()); err != nil {
		return event{}, err
	}
	next, err := hosted.Save(w, n.store, &v)
	if err != nil {
		return event{}, err
	}
	change, err := causal.Between(n.store, next, d)
	if err != nil {
		return event{}, err
	}
	e := event{d, n.seen, change}
	n.store, n.seen = next, n.seen.With(d)
	return e, nil
}

func (n *node) apply(e event) {
	n.store, n.seen = n.store.Apply(e.change, e.deps, n.seen), n.seen.With(e.dot)
}

func elements(t *testing.T, n *node) []string {
	t.Helper()
	v := crdt.ORSet[string]{}
	err := hosted.Load(&v, n.store, n.seen)
	require.NoError(t, err)
	return slices.Collect(v.All())
}

// A typed set is sent from one node to another as atoms alone, and an add that a remove had not
// seen wins.
func TestBridge_TypedSetTravelsAsAtoms(t *testing.T) {
	a, b := &node{id: 1}, &node{id: 2}
	add := func(e ...string) func(*crdt.Writer, *crdt.ORSet[string]) error {
		return func(w *crdt.Writer, s *crdt.ORSet[string]) error { s.Add(w, e...); return nil }
	}
	e1, err := update(t, a, crdt.ORSet[string]{}, add("milk", "bread"))
	require.NoError(t, err)
	require.Len(t, e1.change.Adds, 2)
	b.apply(e1)
	require.Equal(t, []string{"bread", "milk"}, elements(t, b))

	e2, err := update(t, b, crdt.ORSet[string]{},
		func(w *crdt.Writer, s *crdt.ORSet[string]) error {
			require.Equal(t, 1, s.Remove(w, "milk", "absent"))
			return nil
		})
	require.NoError(t, err)
	require.Len(t, e2.change.Removes, 1)
	e3, err := update(t, a, crdt.ORSet[string]{}, add("milk"))
	require.NoError(t, err)
	a.apply(e2)
	b.apply(e3)
	require.Equal(t, []string{"bread", "milk"}, elements(t, a))
	require.Equal(t, elements(t, a), elements(t, b))
	require.Equal(t, a.store, b.store)
}

// An update that undoes its own change creates no event, and neither does one that does nothing.
func TestBridge_NoChangeNoEvent(t *testing.T) {
	a := &node{id: 1}
	e, err := update(t, a, crdt.ORSet[string]{}, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		s.Add(w, "x")
		s.Remove(w, "x")
		return nil
	})
	require.NoError(t, err)
	require.True(t, e.change.Empty())
}

// The state under a key has one type; requesting another type is an error that changes nothing.
func TestBridge_OtherTypeIsRefused(t *testing.T) {
	a := &node{id: 1}
	_, err := update(t, a, crdt.ORSet[string]{}, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		s.Add(w, "x")
		return nil
	})
	require.NoError(t, err)
	err = hosted.Load(new(crdt.ORSet[int]), a.store, a.seen)
	require.ErrorIs(t, err, crdt.ErrType)
	require.ErrorContains(t, err, "ORSet[string], wanted ORSet[int]")
}

// A value that comes from elsewhere cannot add atoms under the dot of this update.
func TestBridge_ForeignValueIsRefused(t *testing.T) {
	a, b := &node{id: 1}, &node{id: 2}
	_, err := update(t, b, crdt.ORSet[string]{}, func(w *crdt.Writer, s *crdt.ORSet[string]) error {
		s.Add(w, "x")
		return nil
	})
	require.NoError(t, err)
	theirs := crdt.ORSet[string]{}
	err = hosted.Load(&theirs, b.store, b.seen)
	require.NoError(t, err)
	_, err = update(t, a, crdt.ORSet[string]{}, func(_ *crdt.Writer, s *crdt.ORSet[string]) error {
		*s = theirs
		return nil
	})
	require.Error(t, err)
	require.True(t, a.store.Empty())
}

// The size of a value handed out by a replicator does not grow with the number of replicas that
// ever existed: the value names only the replicas of its atoms. The vector in its bytes covers the
// removals of these replicas.
func TestSnapshot_NamesTheReplicasOfItsAtoms(t *testing.T) {
	var past []causal.Dot
	for i := range 100_000 {
		past = append(past, causal.Dot{Replica: causal.Replica(i + 10), N: 1})
	}
	n := &node{id: 7, seen: causal.MakeVector(past...)}
	add := func(e string) func(w *crdt.Writer, v *crdt.ORSet[string]) error {
		return func(w *crdt.Writer, v *crdt.ORSet[string]) error { v.Add(w, e); return nil }
	}
	for _, e := range []string{"x", "y"} {
		_, err := update(t, n, crdt.ORSet[string]{}, add(e))
		require.NoError(t, err)
	}
	load := func() crdt.ORSet[string] {
		v := crdt.ORSet[string]{}
		err := hosted.Load(&v, n.store, n.seen)
		require.NoError(t, err)
		return v
	}
	both := encode(t, load())
	require.Less(t, len(both), 60)
	_, err := update(t, n, crdt.ORSet[string]{}, func(w *crdt.Writer, v *crdt.ORSet[string]) error {
		v.Remove(w, "x")
		return nil
	})
	require.NoError(t, err)

	older, err := crdt.ORSet[string]{}.Decode([]byte(both))
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y"}, slices.Collect(older.All()))
	newer, err := crdt.ORSet[string]{}.Decode([]byte(encode(t, load())))
	require.NoError(t, err)
	require.Equal(t, []string{"y"}, slices.Collect(newer.All()))
	require.Equal(t, []string{"y"}, slices.Collect(older.Merge(newer).All()))
	require.Equal(t, 1, seen(t, newer).Len())
}
