package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
)

// Replicas that ran for members until recently are known for a while, and only a bounded number of
// them.
func TestFormers_AreBounded(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	a, c := l.cores["a"], l.cores["c"].Replica()
	l.cores["c"] = nil
	l.start("c")
	l.meet()
	require.Equal(t, c, a.formers.list[0].replica)
	for r := range causal.Replica(2 * maxFormers) {
		a.formers.replaced(1000+r, a.now)
	}
	require.Len(t, a.formers.list, maxFormers)
	l.pass((formerBeats + 1) * time.Second)
	require.Empty(t, a.formers.list)
}

// The next incarnation of a process sees no peers at first. The replicas that the incarnation
// before it saw are former replicas to it: a late message of one may still reach a member.
func TestFormers_ArePeersOfThePreviousIncarnation(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	old := l.cores["c"].Replica()
	l.again("c")
	l.meet()
	require.True(t, l.cores["b"].formers.has(old))
	a, c := l.cores["a"].Replica(), l.cores["c"].Replica()
	l.again("b")
	l.now = l.now.Add(time.Hour) // the clock is set
	b := l.cores["b"]
	b.members.Memory = quorum.Memory{} // which may name earlier processes
	require.True(t, b.formers.has(a))
	require.Len(t, b.formers.list, 3)
	require.True(t, b.formers.has(c))
	require.True(t, b.formers.has(old))
	for range formerBeats {
		l.beat("b")
	}
	require.Len(t, b.formers.list, 3)
	for range 2 {
		l.beat("b")
	}
	require.Empty(t, b.formers.list)
}
