package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
)

// Two of five are damaged, each in a different way: neither takes the state of the other.
func TestDivergence_TwoThatAreDamagedTakeTheStateOfTheRest(t *testing.T) {
	l := filled(t, 40, "a", "b", "c", "d", "e")
	want := stateBytes(l.cores["c"])
	l.rot("a", "s0007", true, dropFirst)
	l.rot("b", "s0009", true, zombie)
	l.pass(8 * time.Second)
	l.equal("a", "b", "c", "d", "e")
	require.Equal(t, want, stateBytes(l.cores["a"]))
	require.EqualValues(t, 1, l.cores["a"].Stats().Mended)
	require.EqualValues(t, 1, l.cores["b"].Stats().Mended)
	for _, m := range []string{"c", "d", "e"} {
		require.Zero(t, l.cores[m].Stats().Mended)
	}
}

// Where no two hold the same, all take the state of the replica with the smallest id.
func TestDivergence_WhereAllDifferOneStands(t *testing.T) {
	l := filled(t, 40, "a", "b", "c")
	l.rot("b", "s0007", true, dropFirst)
	l.rot("c", "s0009", true, dropFirst)
	want := stateBytes(l.cores["a"])
	l.pass(8 * time.Second)
	l.equal("a", "b", "c")
	require.Equal(t, want, stateBytes(l.cores["b"]))
	require.Zero(t, l.cores["a"].Stats().Mended)
}

// Two and two of five agree, and one differs from both: the pair with the smaller id wins.
func TestDivergence_OfTwoPairsOneStands(t *testing.T) {
	l := filled(t, 40, "a", "b", "c", "d", "e")
	want := stateBytes(l.cores["b"])
	l.rot("a", "s0007", true, zombie)
	l.rot("d", "s0009", true, dropFirst)
	l.rot("e", "s0009", true, dropFirst)
	l.pass(8 * time.Second)
	l.equal("a", "b", "c", "d", "e")
	require.Equal(t, want, stateBytes(l.cores["a"]))
}

// A side stands when it is a majority, however few have been compared; a smaller one may turn out
// to be outvoted.
func TestDivergence_AMajorityStandsBeforeAllAreCompared(t *testing.T) {
	l := filled(t, 10, "a", "b", "c", "d", "e")
	e := l.cores["e"]
	for _, p := range e.peers {
		p.vote = stateVote{}
	}
	e.peers.of("a").vote = stateVote{true, history.Sum{1, 1}}
	e.in.adoptMajority(e.herald(), e.peers)
	require.False(t, e.in.Busy(), "b, c and d may hold what e does")
	for _, n := range []string{"b", "c"} {
		e.peers.of(n).vote = stateVote{true, history.Sum{1, 1}}
	}
	e.in.adoptMajority(e.herald(), e.peers)
	require.True(t, e.in.Busy(), "three of five")
	require.True(t, e.in.Content().whole)
}
