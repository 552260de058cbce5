package core

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// follows makes an update after which another event follows at once, and returns its id.
func (l *lab) follows(name string, level Level, ops ...op) uint64 {
	return l.followed(name, level, func(t *history.Txn) error { return perform(t, ops) })
}

func (l *lab) followed(name string, level Level, modify func(*history.Txn) error) uint64 {
	l.id++
	l.step(name, Update{ID: l.id, Level: level, Deadline: l.now.Add(time.Hour), Modify: modify,
		More: true})
	return l.id
}

// An answer says that readers see the update. Until the events are committed, nobody sees anything.
func TestOpen_AnswersWaitForTheCommit(t *testing.T) {
	l := newLab(t, "a", "b")
	a := l.cores["a"]
	var order []uint64
	l.watch = func(_ string, e Effect) {
		if d, ok := e.(Done); ok {
			order = append(order, d.ID)
			l.shows("a", "c/k=7\n")
		}
	}
	first := l.follows("a", Level{}, count("c", "k", 1))
	second := l.follows("a", Level{}, count("c", "k", 2))
	require.Empty(t, l.done)
	require.Zero(t, a.Seen().Get(a.Replica()))
	require.EqualValues(t, 2, a.Uncopied())
	l.shows("a", "")
	l.answered("a", count("c", "k", 4))
	require.Equal(t, []uint64{first, second, l.id}, order)
	require.EqualValues(t, 3, a.Stats().Events)
	own, ok := a.history.Events(a.Replica(), 1)
	require.True(t, ok)
	require.Empty(t, own[0].Keys)
	require.Empty(t, own[1].Keys)
	require.Len(t, own[2].Keys, 1)
	l.step("a", Wake{})
	l.deliver(all)
	l.shows("b", "c/k=7\n")
	l.equal("a", "b")
}

// The value that an update returns may be merged elsewhere. It says which event it has seen, so no
// two updates share one, and none names an event that another update becomes.
func TestOpen_EveryAnswerHasAnEventOfItsOwn(t *testing.T) {
	l := newLab(t, "a", "b")
	a := l.cores["a"]
	n := func(v causal.Vector) uint64 { return v.Get(a.Replica()) }
	see := func(id, before, after uint64, ops ...op) {
		l.followed("a", Level{}, func(t *history.Txn) error {
			require.EqualValues(l.t, id, t.Dot().N)
			require.EqualValues(l.t, before, n(t.Seen()))
			require.EqualValues(l.t, before, n(t.After(false)))
			if len(ops) > 0 {
				require.EqualValues(l.t, after, n(t.After(true)))
			}
			return perform(t, ops)
		})
	}
	see(1, 0, 1, add("s", "x"))
	see(2, 1, 2, remove("s", "x"))
	see(3, 2, 2)
	l.quiet("a", add("s", "y"))
	l.followed("a", Level{}, func(t *history.Txn) error {
		require.EqualValues(l.t, 3, n(t.After(false)), "with the update without a waiter")
		return nil
	})
	see(4, 3, 4, remove("s", "y"))
	l.step("a", End{})
	require.EqualValues(t, 4, n(a.Seen()), "events of which nothing is left are numbered")
	l.shows("a", "")
	see(5, 4, 5, add("s", "z"))
	l.step("a", Wake{})
	l.deliver(all)
	l.shows("b", "s/z=1\n")
	require.EqualValues(t, 5, n(l.cores["b"].Seen()))
	l.equal("a", "b")
}

// An atom has the dot of the event that added it, for those that receive a push and for those that
// ask.
func TestOpen_AtomsBelongToTheEventsThatAddedThem(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "old"), add("s", "gone"), count("c", "k", 1),
		count("c", "m", 1))
	l.deliver(all)
	l.follows("a", Level{}, add("s", "x"), remove("s", "gone"), count("c", "k", 1))
	l.follows("a", Level{}, add("s", "y"), op{kind: opDelete, key: "s1"}, drop("c", "m"))
	l.follows("a", Level{}, add("s", "old"), add("s1", "z"), count("c", "m", 5))
	l.follows("a", Level{}, op{kind: opDelete, key: "s1"}, count("c", "k", 1), add("s2", "x"))
	l.answered("a", add("s1", "w"), remove("s2", "x"))
	l.step("a", Wake{})
	l.take(func(m mail) bool { return m.to == "c" })
	l.deliver(all)
	l.shows("b", "c/k=3\nc/m=5\ns/old=1\ns/x=1\ns/y=1\ns1/w=1\n")
	l.equal("a", "b")
	l.pass(3 * time.Second)
	require.Positive(t, l.cores["c"].Stats().Deltas)
	l.equal("a", "b", "c")
	for _, n := range l.order {
		require.Zero(t, l.cores[n].Stats().Diverged, "%s has never differed", n)
	}
}

// A rejected update is answered after those before it, and leaves no trace.
func TestOpen_ARejectedUpdateIsAnsweredInTurn(t *testing.T) {
	l := newLab(t, "a", "b")
	why := errors.New("no")
	var order []uint64
	l.watch = func(_ string, e Effect) {
		if d, ok := e.(Done); ok {
			order = append(order, d.ID)
		}
	}
	first := l.follows("a", Level{}, add("s", "x"))
	second := l.followed("a", Level{}, func(t *history.Txn) error {
		require.NoError(l.t, perform(t, []op{add("s", "y"), add("s1", "y")}))
		return why
	})
	third := l.follows("a", Level{}, add("s", "z"))
	require.Empty(t, order)
	l.step("a", End{})
	require.Equal(t, []uint64{first, second, third}, order)
	require.ErrorIs(t, l.done[second].Err, why)
	l.shows("a", "s/x=1\ns/z=1\n")
	require.EqualValues(t, 2, l.cores["a"].Stats().Events)
}

// An answer waits for others at most for a millisecond, and for a bounded number of them.
func TestOpen_AnswersDoNotWaitForLong(t *testing.T) {
	l := newLab(t, "a", "b")
	first := l.follows("a", Level{}, count("c", "k", 1))
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake())
	l.now = l.now.Add(time.Millisecond)
	second := l.follows("a", Level{}, count("c", "k", 1))
	require.Contains(t, l.done, first)
	require.Contains(t, l.done, second)
	third := l.follows("a", Level{}, count("c", "k", 1))
	l.step("a", Receive{Member: "b", From: l.cores["b"].Replica(), Manifest: wire.ReplicatorBeat})
	require.Contains(t, l.done, third, "any other event ends them")
	for range maxUnanswered {
		l.follows("a", Level{}, count("c", "k", 1))
	}
	require.Contains(t, l.done, l.id)
}

// Each call at a level waits for its own event, and for no other.
func TestOpen_CallsAtALevelShareACommit(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "seen"))
	l.deliver(all)
	nothing := l.follows("a", majority, remove("s", "other"))
	first := l.follows("a", majority, add("s", "x"))
	local := l.follows("a", Level{}, add("s", "y"))
	last := l.follows("a", Level{Kind: All}, add("s", "z"))
	l.step("a", End{})
	require.Contains(t, l.done, local)
	require.NotContains(t, l.done, first)
	l.step("a", Wake{})
	l.deliver(func(m mail) bool { return m.to != "c" && m.from != "c" })
	require.Contains(t, l.done, first)
	require.Contains(t, l.done, nothing)
	require.NotContains(t, l.done, last)
	l.deliver(all)
	l.succeeded(last)
}

// Wherever a step panics, updates that share a commit are made, all of them or none, and answered.
func TestOpen_APanicMakesAllOrNone(t *testing.T) {
	everywhere(t, func(l *lab) {
		l.follows("b", Level{}, add("s", "x"))
		l.quiet("b", count("c", "k", 1))
		last := l.follows("b", majority, count("c", "k", 1), add("s1", "x"))
		l.step("b", End{})
		l.deliver(all)
		l.pass(2 * time.Second)
		got, _ := shown(l.cores["b"].Keys())
		require.True(l.t, got == "c/k=2\ns/x=1\ns1/x=1\n" || l.blasted > 0, got)
		require.True(l.t, l.done[last].Interrupted || got == "c/k=2\ns/x=1\ns1/x=1\n" ||
			got == "c/k=2\ns1/x=1\n", got)
	})
}

// Two processes go on from one snapshot. Their first updates are alike, and are committed with
// different ones. The numbers name different events then, from the first on: what they have in
// common ends before.
func TestOpen_HashesTellApartWhatWasCommittedTogether(t *testing.T) {
	l, snapshot := restorable(t)
	a := l.cores["a"]
	from := a.Seen().Get(a.Replica())
	commit := func(c *Core, last string) {
		l.cores["a"] = c
		l.follows("a", Level{}, count("c", "k", 1))
		l.follows("a", Level{}, add("s", last))
		l.step("a", End{})
	}
	twin := frozen(snapshot)
	commit(snapshot, "x")
	commit(twin, "y")
	n := snapshot.Seen().Get(snapshot.Replica())
	require.Equal(t, n, twin.Seen().Get(twin.Replica()))
	require.NotZero(t, from)
	hash := func(c *Core, n uint64) history.EventHash { return c.history.HashAt(c.Replica(), n) }
	for _, n := range []uint64{n, n - 1} {
		require.NotZero(t, hash(snapshot, n))
		require.NotZero(t, hash(twin, n))
		require.NotEqual(t, hash(snapshot, n), hash(twin, n))
	}
	require.Equal(t, hash(snapshot, n-2), hash(twin, n-2))
}

// An answered update takes back what one without a waiter did. The value that it returns says that
// the replica has seen its event, so no other event may have that number.
func TestOpen_TheNumberOfAnAnswerIsNotUsedAgain(t *testing.T) {
	l := newLab(t, "a", "b")
	a := l.cores["a"]
	l.quiet("a", add("s", "x"))
	var says causal.Vector
	l.id++
	l.step("a", Update{ID: l.id, Modify: func(t *history.Txn) error {
		says = t.After(true)
		return perform(t, []op{remove("s", "x")})
	}})
	require.EqualValues(t, 1, says.Get(a.Replica()))
	l.answered("a", add("s", "y"))
	for _, e := range atomsOf(a, "s") {
		require.False(t, says.Covers(e), "a merge of the value would remove y")
	}
	l.step("a", Wake{})
	l.deliver(all)
	l.shows("b", "s/y=1\n")
	l.equal("a", "b")
}

func atomsOf(c *Core, key string) (dots []causal.Dot) {
	h, _ := c.Keys().Get(key)
	for _, e := range h.Prefix("") {
		for at := range e.All() {
			dots = append(dots, at.Dot)
		}
	}
	return dots
}

// Each event of a commit takes room for its own keys, not for those of all events.
func TestOpen_EventsOfABurstTakeRoomForTheirOwnKeys(t *testing.T) {
	l := newLab(t, "a", "b")
	const n = 200
	for i := range n {
		l.follows("a", Level{}, add(fmt.Sprintf("s%03d", i), "x"))
	}
	l.step("a", End{})
	a := l.cores["a"]
	own, ok := a.history.Events(a.Replica(), 1)
	require.True(t, ok)
	require.Len(t, own, n)
	for _, e := range own {
		require.Len(t, e.Keys, 1)
		require.LessOrEqual(t, cap(e.Keys), 4)
	}
}

// The keys of a large update are merged into those of the open events in one pass.
func TestOpen_ALargeUpdateJoinsOpenKeys(t *testing.T) {
	l := newLab(t, "a", "b")
	l.follows("a", Level{}, add("s00", "y"), add("s05", "x"), add("s99", "x"))
	var many []op
	for i := range 3 * 16 {
		many = append(many, add(fmt.Sprintf("s%02d", i), "x"), remove("s00", "y"))
	}
	l.follows("a", Level{}, many...)
	l.follows("a", Level{}, remove("s05", "x"))
	l.step("a", End{})
	l.step("a", Wake{})
	l.deliver(all)
	a := l.cores["a"]
	require.Equal(t, 3*16, a.Keys().Len(), "s05 is empty, s99 is there")
	l.equal("a", "b")
}
