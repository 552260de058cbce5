package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// again ends the incarnation of a replica and begins the next one.
func (l *lab) again(name string) {
	old := l.cores[name]
	l.start(name)
	l.cores[name] = old.Again(l.cores[name].cfg)
	l.box = nil // messages in flight are addressed to another member id
}

// Without the handover, 47 of 314 updates of a member that was cut off were silently lost.
func TestRejoin_WritesMadeAloneReachTheOthers(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "before"))
	l.deliver(all)
	was := l.cores["a"].Replica()
	for _, e := range []string{"x", "y"} {
		l.update("a", Level{}, add("s", e))
		l.take(all) // cut off
	}
	require.EqualValues(t, 2, l.cores["a"].Uncopied())
	l.update("b", Level{}, add("s", "meanwhile"))
	l.take(between("b", "a"))
	l.deliver(all)
	l.again("a")
	require.NotEqual(t, was, l.cores["a"].Replica())
	require.EqualValues(t, 2, l.cores["a"].Uncopied())
	l.meet()
	for _, n := range l.order {
		l.shows(n, "s/before=1\ns/meanwhile=1\ns/x=1\ns/y=1\n")
		require.EqualValues(t, 3, l.cores[n].Seen().Get(was))
		require.True(t, l.cores[n].Ready())
	}
	require.Zero(t, l.cores["a"].Uncopied())
	require.Zero(t, l.cores["b"].Stats().Bulks, "the log reaches back")
}

// The homes of shards are assigned anew when they are lost; nothing else is.
func TestRejoin_TheTableOfShardsIsNotMissed(t *testing.T) {
	const table, stay = "concord-sharding-cart/shard-7", "concord-sharding-cart/external"
	l := newLab(t, "a", "b")
	alone := func(keys ...string) {
		t.Helper()
		l.take(all)
		require.Equal(t, len(keys) > 0, l.cores["a"].Uncopied() > 0)
		require.Equal(t, keys, l.cores["a"].UncopiedKeys(9))
	}
	l.update("a", Level{}, count(table, "k", 1))
	l.update("a", Level{}, count("concord-sharding-cart/settings", "k", 1))
	alone()
	l.again("a")
	alone()
	l.update("a", Level{}, add("s", "x"))
	l.update("a", Level{}, count(table, "k", 1))
	alone("s")
	l.update("a", Level{}, count(stay, "k", 1))
	alone(stay, "s")
	l.again("a")
	alone(stay, "s")
	l.meet()
	alone()
	l.shows("b", "concord-sharding-cart/external/k=1\nconcord-sharding-cart/settings/k=1\n"+
		"concord-sharding-cart/shard-7/k=2\ns/x=1\n")
}

func TestRejoin_TheOpenEventIsKept(t *testing.T) {
	l := newLab(t, "a", "b")
	l.quiet("a", count("c", "k", 1))
	l.quiet("a", count("c", "k", 1)) // they have no waiters: one open event
	require.EqualValues(t, 1, l.cores["a"].Uncopied())
	l.again("a")
	l.shows("a", "c/k=2\n")
	l.meet()
	l.shows("b", "c/k=2\n")
	l.quiet("a", count("c", "k", 1))
	l.tick(time.Second)
	l.shows("b", "c/k=3\n")
}

// An incarnation that counted at once would acknowledge, and answer reads, before it knows what a
// majority of the others wrote without it.
func TestRejoin_CountsNowhereUntilRefilled(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	id := l.update("b", majority, add("s", "x"))
	l.take(between("b", "a"))
	l.deliver(all)
	require.Contains(t, l.done, id)
	l.again("a")
	require.False(t, l.cores["a"].Ready())
	l.see("a", "bc")
	l.step("a", Read{ID: 77, Level: majority, Deadline: l.now.Add(time.Hour)})
	require.NotContains(t, l.done, uint64(77))
	l.meet()
	require.True(t, l.cores["a"].Ready())
	require.Contains(t, l.done, uint64(77))
	l.shows("a", "s/x=1\n")
}

// The next incarnation reaches no member either, and the one after it still holds what the first
// one wrote.
func TestRejoin_UnfetchedEventsReachTheNextButOne(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"))
	l.take(all)
	l.again("a")
	l.update("a", Level{}, add("s", "y"))
	l.again("a")
	require.EqualValues(t, 2, l.cores["a"].Uncopied())
	l.meet()
	l.shows("b", "s/x=1\ns/y=1\n")
}

// A member that leaves in order also waits for the events of its earlier incarnations.
func TestRejoin_DrainWaitsForEarlierIncarnations(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"))
	l.take(all)
	l.again("a")
	l.seeAll("a", "b")
	l.deliver(of(wire.ReplicatorBeat)) // they know each other, and b is ready
	require.True(t, l.cores["a"].peers.of("b").ready)
	l.step("a", Drain{ID: 5, Deadline: l.now.Add(time.Hour)})
	require.NotContains(t, l.done, uint64(5))
	l.pass(2 * time.Second)
	l.succeeded(5)
	l.shows("b", "s/x=1\n")
}

func TestDrain_AloneBelowMinMembersEndsAtOnce(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"))
	l.take(all)
	l.step("a", View{})
	l.step("a", Drain{ID: 5, Deadline: l.now.Add(time.Hour)})
	require.NotNil(t, l.done[5].Short)
	require.Equal(t, 1, l.done[5].Short.Needed)
	l.meet()
	l.step("a", View{})
	l.step("a", Drain{ID: 6, Deadline: l.now.Add(time.Hour)})
	require.Contains(t, l.done, uint64(6))
	require.Equal(t, []string{"b"}, l.done[6].Short.Missing, "b had it, and may be gone")
}

// The actor of the earlier incarnation was stuck in user code when the next one began.
func TestRejoin_AnIncarnationThatEndsLateIsInherited(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"))
	l.take(all)
	old := l.cores["a"]
	l.start("a")
	l.meet()
	l.update("a", Level{}, add("s", "new"))
	l.quiet("a", add("s", "open"))
	// The update in which it was stuck.
	old.Step(l.now, Update{Modify: func(t *history.Txn) error {
		return perform(t, []op{add("s", "late")})
	}})
	l.step("a", Inherit{Old: old})
	require.EqualValues(t, 4, l.cores["a"].Uncopied())
	l.meet()
	l.allShow("s/late=1\ns/new=1\ns/open=1\ns/x=1\n")
	require.Zero(t, l.cores["a"].Uncopied())
	require.True(t, l.cores["b"].Seen().Covers(causal.Dot{Replica: old.Replica(), N: 2}))
}

// The increments of a counter's earlier incarnation must neither come back after a reset nor be
// lost by it.
func TestRejoin_ACounterIsResetAcrossIncarnations(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, count("c", "k", 5))
	l.deliver(all)
	l.update("a", Level{}, count("c", "k", 2)) // while it is alone
	l.take(all)
	l.update("b", Level{}, drop("c", "k"))
	l.take(all)
	l.again("a")
	l.meet()
	l.shows("a", "c/k=2\n")
	l.shows("b", "c/k=2\n")
	l.update("a", Level{}, count("c", "k", 1))
	l.deliver(all)
	l.shows("b", "c/k=3\n")
	require.Equal(t, stateBytes(l.cores["a"]), stateBytes(l.cores["b"]))
}
