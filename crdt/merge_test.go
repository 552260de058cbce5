package crdt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// A value in the middle of an update holds atoms that its seen vector does not cover yet. A merge
// with a value that has seen more keeps them.
func TestMerge_WithinAnUpdateKeepsWhatItMade(t *testing.T) {
	held, later := crdt.ORSet[string]{}, crdt.ORSet[string]{}
	later.Add(crdt.NewReplica(2).Writer(), "theirs")

	w, end := hosted.Writer[*crdt.Writer](causal.Dot{Replica: 1, N: 1}, 1)
	defer end()
	err := hosted.Load(&held, causal.Store{}, causal.Vector{})
	require.NoError(t, err)
	held.Add(w, "mine")
	require.Equal(t, "{mine theirs}", held.Merge(later).String())
	require.Equal(t, "{mine theirs}", later.Merge(held).String())
}

// A merge with a state that has seen everything the other has costs nothing, whatever their
// difference, even if they were built separately.
func TestMerge_WithAnAncestor(t *testing.T) {
	base, alice := filled(1000)
	later := base
	for i := range 100 {
		later.Add(alice.Writer(), element(i)+"+")
		later.Remove(alice.Writer(), element(2*i))
	}
	apart, err := base.Decode([]byte(encode(t, base)))
	require.NoError(t, err)
	for _, old := range []crdt.ORSet[string]{base, apart, {}} {
		require.Equal(t, encode(t, later), encode(t, old.Merge(later)))
		require.Equal(t, encode(t, later), encode(t, later.Merge(old)))
		if !raceEnabled {
			require.Zero(t, testing.AllocsPerRun(10, func() { old.Merge(later) }))
		}
	}
}
