package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
)

// Minimal examples of what R57 does not promise.

// twoBranches is a cluster of a, b and c in which one number of a names two events, both
// acknowledged by a majority: b holds "old", from before a restore of a, and c holds "new", from
// after it. No member has noticed the restore.
func twoBranches(t *testing.T) (l *lab, snapshot *Core) {
	l = newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	snapshot = frozen(l.cores["a"])
	l.now = l.now.Add(time.Millisecond)
	l.update("a", majority, add("s", "old"))
	l.take(between("a", "c")) // lost
	l.deliver(all)
	require.Nil(t, l.done[l.id].Short)
	l.cores["a"] = frozen(snapshot)
	l.act("new")
	l.take(between("a", "b")) // lost
	l.deliver(of(wire.ReplicatorPush))
	l.take(between("c", "b")) // lost
	l.deliver(all)
	require.Nil(t, l.done[l.id].Short)
	l.shows("b", "s/base=1\ns/old=1\n")
	l.shows("c", "s/base=1\ns/new=1\n")
	return l, snapshot
}

// oneOfTwo asserts that all members hold the same in the end, and that one of the two acknowledged
// writes is lost, but nothing that another replica did.
func (l *lab) oneOfTwo() {
	l.t.Helper()
	l.update("b", Level{}, add("s2", "b"))
	l.update("c", Level{}, add("s2", "c"))
	for range 30 {
		l.tick(time.Second)
	}
	l.settled()
	got, err := shown(l.cores["a"].Keys())
	require.NoError(l.t, err)
	require.Contains(l.t, []string{"s/base=1\ns/new=1\ns2/b=1\ns2/c=1\n",
		"s/base=1\ns/old=1\ns2/b=1\ns2/c=1\n"}, got)
}

// A snapshot is restored twice. The events of the two lives cannot be told apart where both have
// been acknowledged, and the process that could redo them is gone.
func TestLimit_ASnapshotRestoredTwiceLosesAnAcknowledgedWrite(t *testing.T) {
	l, snapshot := twoBranches(t)
	l.cores["a"] = snapshot
	l.oneOfTwo()
}

// A restored process ends before the other members have noticed the restore.
func TestLimit_ARestoredLifeThatEndsUnnoticedLosesAnAcknowledgedWrite(t *testing.T) {
	t.Run("killed", func(t *testing.T) {
		l, _ := twoBranches(t)
		l.start("a")
		l.meet()
		l.oneOfTwo()
	})
	t.Run("in another life", func(t *testing.T) {
		l, _ := twoBranches(t)
		l.again("a")
		l.meet()
		l.oneOfTwo()
	})
}

// The same, but the restored process lives until it has heard of it: nothing is lost.
func TestRestored_BothBranchesWereAcknowledged(t *testing.T) {
	l, _ := twoBranches(t)
	for range 30 {
		l.tick(time.Second)
	}
	l.settled()
	l.shows("a", "s/base=1\ns/new=1\ns/old=1\n")
	require.Len(t, l.reb, 1)
}
