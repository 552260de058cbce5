package crdt_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

func TestLWWMap_SetGetRemove(t *testing.T) {
	alice := crdt.NewReplica(1)
	var m crdt.LWWMap[string, int64]
	m.Set(alice.Writer(), "a", 1)
	m.Set(alice.Writer(), "b", 2)
	before := m
	m.Set(alice.Writer(), "a", 3)
	require.Equal(t, 1, m.Remove(alice.Writer(), "b", "c"))
	v, ok := m.Get("a")
	require.True(t, ok)
	require.EqualValues(t, 3, v)
	require.Equal(t, 1, m.Len())
	require.Equal(t, map[string]int64{"a": 3}, maps.Collect(m.All()))
	changed, removed := m.Diff(before)
	require.Equal(t, map[string]int64{"a": 3}, maps.Collect(changed))
	require.Equal(t, []string{"b"}, slices.Collect(removed))
	m.Clear(alice.Writer())
	require.Zero(t, m.Len())
}

func TestPNCounter_MergeCountsEachAdditionOnce(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.PNCounter
	a.Add(alice.Writer(), 5)
	a.Add(alice.Writer(), -7)
	b.Add(bob.Writer(), 10)
	a = a.Merge(b).Merge(b)
	require.EqualValues(t, 8, a.Value())
	require.EqualValues(t, 8, b.Merge(a).Value())
}

func TestORMap_RemoveResetsWhatItSaw(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.ORMap[string, crdt.PNCounter]
	add := func(m *crdt.ORMap[string, crdt.PNCounter], w *crdt.Writer, n int64) {
		m.Update(w, "k", func(c *crdt.PNCounter) { c.Add(w, n) })
	}
	add(&a, alice.Writer(), 10)
	b = b.Merge(a)
	require.Equal(t, 1, b.Remove(bob.Writer(), "k"))
	add(&a, alice.Writer(), 1)
	a = a.Merge(b)
	c, ok := a.Get("k")
	require.True(t, ok)
	require.EqualValues(t, 1, c.Value())
}
