package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// settled advances the time by seconds. It asserts that all replicas then hold the same, and that
// the calls have succeeded.
func (l *lab) settled(calls ...uint64) {
	l.t.Helper()
	for range 8 {
		l.tick(time.Second)
	}
	for _, n := range l.order[1:] {
		l.equal(l.order[0], n)
	}
	for _, id := range calls {
		d, ended := l.done[id]
		require.True(l.t, ended, "call %d", id)
		require.Nil(l.t, d.Short, "call %d", id)
		require.NoError(l.t, d.Err)
	}
}

// A replica is replaced by a snapshot of its machine, and its first act is a write under numbers
// that were used since. Before R57, peers took the write for a duplicate and acknowledged it, and
// mending erased it.
func TestRestored_TheFirstActIsAWrite(t *testing.T) {
	tests := map[string]struct {
		since [][]op // acknowledged writes of the replica after the snapshot
		acts  [][]op // writes of the restored replica
		want  string
	}{
		"another key": {[][]op{{add("s", "old")}}, [][]op{{add("s2", "new")}},
			"s/base=1\ns/old=1\ns2/new=1\n"},
		"the same key": {[][]op{{add("s", "old")}}, [][]op{{add("s", "new")}},
			"s/base=1\ns/new=1\ns/old=1\n"},
		"the same again": {[][]op{{add("s", "old")}}, [][]op{{add("s", "old")}},
			"s/base=1\ns/old=1\n"},
		"five since, one now": {
			[][]op{{add("s", "1")}, {add("s", "2")}, {add("s", "3")}, {add("s", "4")},
				{add("s", "5")}},
			[][]op{{add("s", "new")}}, "s/1=1\ns/2=1\ns/3=1\ns/4=1\ns/5=1\ns/base=1\ns/new=1\n",
		},
		"one since, three now": {
			[][]op{{add("s", "old")}},
			[][]op{{add("s", "1")}, {remove("s", "1"), add("s", "2")}, {add("s2", "3")}},
			"s/2=1\ns/base=1\ns/old=1\ns2/3=1\n",
		},
		"counters": {
			[][]op{{count("c", "n", 5)}, {count("c", "n", 7)}}, [][]op{{count("c", "n", 100)},
				{count("c", "n", 1000)}}, "c/n=1113\ns/base=1\n",
		},
		"a removal": {[][]op{{add("s", "old")}}, [][]op{{remove("s", "base")}}, "s/old=1\n"},
		"a deletion": {
			[][]op{{add("s", "old")}}, [][]op{{op{kind: opDelete, key: "s"}}, {add("s", "new")}},
			"s/new=1\ns/old=1\n",
		},
		"a reset of another's counter": {
			[][]op{{add("s2", "old")}}, [][]op{{drop("c", "n")}}, "s/base=1\ns2/old=1\n",
		},
		"registers": {
			[][]op{{op{kind: opWrite, key: "r", sub: "x", value: 1}}},
			[][]op{{op{kind: opWrite, key: "r", sub: "x", value: 2}}}, "r/x=2\ns/base=1\n",
		},
	}
	for name, test := range tests {
		// lost is what one peer did not receive before the restore.
		for _, lost := range []string{"", "a>c", "a>b"} {
			t.Run(name+" lost "+lost, func(t *testing.T) {
				l, was := playRestored(t, lost, nil, test.since, test.acts)
				for _, n := range l.order {
					want := test.want
					if _, counts := test.since[0][0], test.since[0][0].kind == opCount; !counts &&
						name != "a reset of another's counter" {
						want = "c/n=1\n" + want
					}
					l.shows(n, want)
				}
				require.NotEqual(t, was, l.cores["a"].Replica())
				require.Len(t, l.reb, 1)
			})
		}
	}
}

// playRestored plays a replica a that writes, of which a snapshot is taken, that continues writing,
// and that is then replaced by the snapshot, which writes. On the link lost, everything is lost
// between snapshot and restore. It returns the id of a before the restore.
func playRestored(t *testing.T, lost string, had []op, since, acts [][]op) (*lab, causal.Replica) {
	l := newLab(t, "a", "b", "c")
	was, calls := l.playRestored(lost, had, since, acts)
	l.settled(calls...)
	return l, was
}

// playRestored returns the former id of a, and the calls that have not ended.
func (l *lab) playRestored(lost string, had []op, since, acts [][]op) (was causal.Replica,
	calls []uint64) {
	l.update("b", Level{}, count("c", "n", 1))
	l.update("a", majority, append([]op{add("s", "base")}, had...)...)
	l.settled(l.id)
	snapshot := frozen(l.cores["a"])
	for _, ops := range since {
		l.now = l.now.Add(time.Millisecond)
		id := l.update("a", majority, ops...)
		if lost != "" {
			l.take(between("a", lost[2:]))
		}
		l.deliver(all)
		require.Nil(l.t, l.done[id].Short)
	}
	l.now = l.now.Add(3 * time.Millisecond)
	l.cores["a"] = snapshot
	for _, ops := range acts {
		l.now = l.now.Add(time.Millisecond)
		calls = append(calls, l.update("a", majority, ops...))
	}
	return snapshot.Replica(), calls
}

// The restored replica's changes of its own counter slots are redone exactly: its increments are
// added to the present content of the slot, and a reset subtracts what it had seen there, which is
// the content of the snapshot.
func TestRestored_Counters(t *testing.T) {
	for name, test := range restoredCounters() {
		for _, lost := range []string{"", "a>c", "a>b"} {
			if lost != "" && len(test.acts) > len(test.since) {
				// a peer takes numbers that the original never used: counted twice, as R57 says
				continue
			}
			t.Run(name+" lost "+lost, func(t *testing.T) {
				l, _ := playRestored(t, lost, test.had, test.since, test.acts)
				test.shown(l)
			})
		}
	}
}

// The restored replica has an event of a member that is gone, its log does not say what that was,
// and the only state that it can get does not cover it. The replica takes its own events back and
// joins that state. Before, it waited forever.
func TestRestored_WhatOnlyItHas(t *testing.T) {
	for name, test := range restoredCounters() {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "a", "b", "c", "d")
			_, calls := l.playRestored("", append(test.had, add("s", "gone"), add("t", "deleted")),
				test.since, append(test.acts, []op{remove("s", "gone")},
					[]op{{kind: opDelete, key: "t"}}, []op{add("s", "mine")}))
			l.take(between("a", "d"))
			l.update("d", Level{}, add("s", "only"))
			l.deliver(between("d", "a"))
			l.deliver(between("d", "c"))
			c := l.cores["c"]
			l.cores["d"], l.order, l.cores["c"] = nil, l.order[:3], nil
			l.take(all)
			l.cutLogs("a")
			for range 8 {
				l.tick(time.Second)
			}
			require.Nil(t, l.cores["a"].revoked, "done again")
			l.cores["c"] = c // it takes what a has done again as an event
			l.settled(calls...)
			test.shown(l)
			got, err := shown(l.cores["b"].Keys())
			require.NoError(t, err)
			require.Contains(t, got, "s/only=1\n")
			require.Contains(t, got, "s/base=1\ns/mine=1\n")
			require.NotContains(t, got, "s/gone")
			require.NotContains(t, got, "t/")
			require.Zero(t, l.cores["b"].Stats().Mended+c.Stats().Mended, "nobody was outvoted")
			require.EqualValues(t, 1, l.cores["a"].Stats().Mended)
		})
	}
}

// The restored replica sees one member, which lacks what the original did last and takes the
// event of the restored one under that number. The others, of which one has the former event, come
// into view later: the event is done again. Before, it was forgotten, since all in view had it.
func TestRestored_OthersComeIntoViewLater(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	view := func(at string, others ...string) {
		var v View
		for _, o := range others {
			v.Others = append(v.Others, Member{ID: o})
		}
		l.step(at, v)
	}
	_, calls := l.playRestored("a>b", nil, [][]op{{add("s", "old")}}, nil)
	view("a", "b")
	view("b", "a")
	view("c")
	l.take(all)
	calls = append(calls, l.act("new"))
	for range 3 {
		l.tick(time.Second)
	}
	l.shows("b", "c/n=1\ns/base=1\ns/new=1\n")
	view("a", "b", "c")
	view("b", "a", "c")
	view("c", "a", "b")
	l.settled(calls...)
	for _, n := range l.order {
		l.shows(n, "c/n=1\ns/base=1\ns/new=1\ns/old=1\n")
	}
}

// restoredCounter is what a replica does to a counter before a snapshot, after it, and when it has
// been restored.
type restoredCounter struct {
	had         []op
	since, acts [][]op
	want        int64 // 0: no counter there
}

// shown asserts that every replica shows the wanted value.
func (test restoredCounter) shown(l *lab) {
	for _, at := range l.order {
		got, err := shown(l.cores[at].Keys())
		require.NoError(l.t, err)
		if test.want == 0 {
			require.NotContains(l.t, got, "c2/n=", at)
		} else {
			require.Contains(l.t, got, fmt.Sprintf("c2/n=%d\n", test.want), at)
		}
	}
	require.Len(l.t, l.reb, 1)
}

func restoredCounters() map[string]restoredCounter {
	n := func(k int64) op { return count("c2", "n", k) }
	reset, gone := drop("c2", "n"), op{kind: opDelete, key: "c2"}
	other := [][]op{{add("s", "old")}}
	return map[string]restoredCounter{
		"both added":            {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{n(100)}, {n(1000)}}, 1115},
		"one added":             {[]op{n(10)}, other, [][]op{{n(100)}, {n(1000)}}, 1110},
		"reset after it grew":   {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{reset}}, 5},
		"reset":                 {[]op{n(10)}, other, [][]op{{reset}}, 0},
		"deleted after it grew": {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{gone}}, 5},
		"deleted":               {[]op{n(10)}, other, [][]op{{gone}}, 0},
		"added and reset":       {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{n(100)}, {reset}}, 5},
		"added and deleted": {[]op{n(10)}, [][]op{{n(5)}, {n(7)}},
			[][]op{{n(100)}, {gone}}, 12},
		"reset and added": {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{reset}, {n(100)}}, 105},
		"added, reset, added": {[]op{n(10)}, [][]op{{n(5)}},
			[][]op{{n(100)}, {reset}, {n(1000)}}, 1005},
		"reset before":           {[]op{n(10)}, [][]op{{reset}}, [][]op{{n(100)}}, 100},
		"reset and grown before": {[]op{n(10)}, [][]op{{reset}, {n(5)}}, [][]op{{n(100)}}, 105},
		"reset by both": {[]op{n(10)}, [][]op{{reset}, {n(5)}},
			[][]op{{reset}, {n(100)}}, 105},
		"new": {nil, [][]op{{n(5)}}, [][]op{{n(100)}, {reset}, {n(1000)}},
			1005},
		"reset where it is older": {[]op{n(10)}, [][]op{{n(5)}, {n(7)}, {n(9)}},
			[][]op{{reset}}, 21},
	}
}

// restorable is a cluster in which a snapshot of a exists, and a has since made an acknowledged
// write.
func restorable(t *testing.T) (l *lab, snapshot *Core) {
	l = newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	snapshot = frozen(l.cores["a"])
	l.now = l.now.Add(time.Millisecond)
	l.update("a", majority, add("s", "old"))
	return l, snapshot
}

// act lets the restored replica write, a moment later.
func (l *lab) act(elem string) uint64 {
	l.now = l.now.Add(time.Millisecond)
	return l.update("a", majority, add("s", elem))
}

func TestRestored_Twice(t *testing.T) {
	l, snapshot := restorable(t)
	l.deliver(all)
	l.cores["a"] = snapshot
	l.settled(l.act("first"))
	snapshot = frozen(l.cores["a"])
	l.settled(l.act("between"))
	l.cores["a"] = snapshot
	l.settled(l.act("second"))
	l.shows("b", "s/base=1\ns/between=1\ns/first=1\ns/old=1\ns/second=1\n")
	require.Len(t, l.reb, 2)
	l.settled(l.act("third"))
	require.Len(t, l.reb, 2)
}

// The life of the process ends after other members have reported that its numbers were used, and
// before one of them has sent the state on which its events are redone.
func TestRestored_ALifeEndsBeforeTheStateHasCome(t *testing.T) {
	l, snapshot := restorable(t)
	l.deliver(all)
	l.cores["a"] = snapshot
	l.act("new")
	for l.cores["a"].revoked == nil {
		require.NotEmpty(t, l.box)
		m := l.box[0]
		l.box = l.box[1:]
		l.hand(m)
	}
	l.again("a")
	l.meet()
	l.settled()
	for _, n := range l.order {
		l.shows(n, "s/base=1\ns/new=1\ns/old=1\n")
	}
}

// The last write before the end of the original, which no member had acknowledged, is still in
// flight when the restored replica writes. Each of the peers receives a different one first.
func TestRestored_BothPrintsInFlight(t *testing.T) {
	l, snapshot := restorable(t)
	late := l.take(of(wire.ReplicatorPush))
	require.Len(t, late, 2)
	l.cores["a"] = snapshot
	id := l.act("new")
	l.hand(late[0])
	l.deliver(between("a", late[1].to))
	l.hand(late[1])
	l.settled(id)
	for _, n := range l.order {
		got, err := shown(l.cores[n].Keys())
		require.NoError(t, err)
		require.Contains(t, got, "s/new=1\n")
		require.Contains(t, got, "s/base=1\n")
	}
}

// Peers that have other events under the numbers of the restored replica do not acknowledge its
// events by sending their vectors, in a heartbeat or in a push that follows those other events.
func TestRestored_NobodyAcknowledgesOtherEvents(t *testing.T) {
	t.Run("by heartbeats", func(t *testing.T) {
		l, snapshot := restorable(t)
		l.deliver(all)
		l.cores["a"] = snapshot
		id := l.act("new")
		l.take(of(wire.ReplicatorPush)) // lost: peers send their vectors
		l.beatOut("b", "a")
		l.beatOut("c", "a")
		before := l.cores["a"].Replica()
		l.deliver(between("b", "a"))
		require.NotContains(t, l.done, id)
		require.NotEqual(t, before, l.cores["a"].Replica(), "noticed")
		l.settled(id)
		l.shows("c", "s/base=1\ns/new=1\ns/old=1\n")
	})
	t.Run("by pushes", func(t *testing.T) {
		l, snapshot := restorable(t)
		l.deliver(all)
		l.cores["a"] = snapshot
		id := l.act("new")
		l.take(of(wire.ReplicatorPush)) // lost
		l.update("b", Level{}, add("s", "b"))
		l.update("c", Level{}, add("s", "c"))
		l.deliver(of(wire.ReplicatorPush))
		require.NotContains(t, l.done, id)
		l.settled(id)
		l.shows("c", "s/b=1\ns/base=1\ns/c=1\ns/new=1\ns/old=1\n")
	})
}

// beatOut puts a heartbeat from one replica to another into the box.
func (l *lab) beatOut(from, to string) {
	c := l.cores[from]
	c.now, c.effects = l.now, c.effects[:0]
	c.sendBeat(c.peer(to))
	for _, e := range c.effects {
		if s, ok := e.(Send); ok {
			l.box = append(l.box, mail{from, s.Member, c.Replica(), s})
		}
	}
}

// While the restored replica waits for the state of another, updates wait too, until their
// deadlines.
func TestRestored_UpdatesWaitForTheState(t *testing.T) {
	l, snapshot := restorable(t)
	l.deliver(all)
	l.cores["a"] = snapshot
	first := l.act("new")
	l.deliver(of(wire.ReplicatorPush))
	l.deliver(of(wire.ReplicatorAck))
	require.NotNil(t, l.cores["a"].revoked)
	second := l.act("later")
	l.id++
	l.step("a", Update{ID: l.id, Deadline: l.now.Add(time.Second), Modify: func(*Txn) error {
		return nil
	}})
	require.NotContains(t, l.done, second)
	l.now = l.now.Add(time.Second)
	l.step("a", Wake{})
	require.ErrorIs(t, l.done[l.id].Err, errRestored)
	l.settled(first, second)
	l.shows("b", "s/base=1\ns/later=1\ns/new=1\ns/old=1\n")
}

// The member that has reported the other events to the restored replica does not answer: it may
// have been restored too, and wait for this one's state. Another member is asked.
func TestRestored_TheOneThatKnewDoesNotAnswer(t *testing.T) {
	l, snapshot := restorable(t)
	l.deliver(all)
	l.cores["a"] = snapshot
	id := l.act("new")
	l.deliver(of(wire.ReplicatorPush))
	l.take(between("c", "a"))
	l.deliver(of(wire.ReplicatorAck))
	require.Equal(t, "b", l.cores["a"].revoked.from)
	for range 10 {
		l.now = l.now.Add(time.Second)
		for _, n := range l.order {
			l.step(n, Wake{})
		}
		l.deliver(func(m mail) bool { return m.from != "b" && m.to != "b" })
		l.take(all)
	}
	require.Nil(t, l.cores["a"].revoked)
	l.settled(id)
	l.shows("b", "s/base=1\ns/new=1\ns/old=1\n")
}

// A replica that merely received messages late is not restored: late, duplicated and lost messages
// are no fork.
func TestPrints_AreTheSameWhateverTheWay(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	for i := range 100 {
		l.now = l.now.Add(time.Millisecond)
		l.update([]string{"a", "b"}[i%2], Level{}, add("s", string(rune('a'+i%26))))
		pushes := l.take(of(wire.ReplicatorPush))
		for j, m := range pushes {
			switch (i + j) % 5 {
			case 0: // lost
			case 1:
				l.hand(m)
				l.hand(m)
			case 2:
				l.box = append(l.box, m) // late
			default:
				l.hand(m)
			}
		}
		if i%10 == 0 {
			l.tick(time.Second)
		}
	}
	l.settled()
	for _, n := range l.order {
		require.Zero(t, l.cores[n].Stats().Forks, n)
		for _, p := range l.cores[n].peers {
			if l.cores[n].seen.Get(p.replica) > 0 {
				require.NotZero(t, l.cores[n].printOf(p.replica), "%s of %s", n, p.ID)
			}
		}
	}
	require.Empty(t, l.reb)
}

// A peer that has the other events does not apply events that follow the restored ones.
func TestRestored_OneThatHasOtherEventsDoesNotGoOn(t *testing.T) {
	l, snapshot := restorable(t)
	l.deliver(all)
	l.cores["a"] = snapshot
	first := l.act("x")
	l.take(of(wire.ReplicatorPush)) // lost
	second := l.act("y")
	l.deliver(of(wire.ReplicatorPush))
	require.Positive(t, l.cores["b"].Stats().Forks)
	l.shows("b", "s/base=1\ns/old=1\n")
	l.settled(first, second)
	l.shows("b", "s/base=1\ns/old=1\ns/x=1\ns/y=1\n")
}

// A replica that is restored, and did nothing since the snapshot, is the same one to the other
// members. It has requested missing events from them since the snapshot, and its requests begin
// again with the same numbers.
func TestRestored_ItsQuestionsAreAnswered(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", majority, add("s", "base"))
	l.settled(l.id)
	snapshot := frozen(l.cores["a"])
	for i := range 40 {
		writer := []string{"b", "c"}[i%2]
		l.update(writer, Level{}, add("s", string(rune('A'+i))))
		l.take(between(writer, "a")) // lost: a has to ask
		l.tick(time.Second)
	}
	l.settled()
	l.cores["a"] = frozen(snapshot)
	l.settled()
	require.Empty(t, l.reb)
	for _, n := range []string{"b", "c"} { // the clock was ahead before the restore
		l.cores[n].peer("a").request += 1_000_000_000_000
	}
	l.cores["a"] = snapshot
	l.settled()
	require.Empty(t, l.reb)
}

// A member that leaves in order while it waits for the state on which it redoes its events has not
// handed over anything yet.
func TestRestored_LeavesWhenItsEventsAreDoneAgain(t *testing.T) {
	l, snapshot := restorable(t)
	l.deliver(all)
	l.cores["a"] = snapshot
	l.act("new")
	l.deliver(of(wire.ReplicatorPush))
	l.deliver(of(wire.ReplicatorAck))
	require.NotNil(t, l.cores["a"].revoked)
	require.EqualValues(t, 1, l.cores["a"].Uncopied())
	require.Equal(t, []string{"s"}, l.cores["a"].UncopiedKeys(5))
	l.id++
	l.step("a", Drain{ID: l.id, Deadline: l.now.Add(time.Minute)})
	require.NotContains(t, l.done, l.id)
	l.settled(l.id)
	l.shows("b", "s/base=1\ns/new=1\ns/old=1\n")
}

// A member that has the events of a restored replica, and hears of others under the same numbers,
// reports both to that replica, since the member with the others may not reach it.
func TestRestored_IsToldOfEventsThatItCannotHearOf(t *testing.T) {
	l := newLab(t, "a", "b")
	was := l.cores["a"].me
	l.update("a", Level{}, add("s", "x"))
	l.deliver(all)
	n := l.cores["a"].seen.Get(was)
	tell := func(n uint64, prints ...imprint) {
		l.step("a", Receive{
			Member: "b", From: l.cores["b"].me, To: was, Manifest: wire.ReplicatorAck,
			Payload: encodeOther("c", n, prints),
		})
	}
	tell(n)
	require.Equal(t, was, l.cores["a"].me, "that says nothing")
	tell(n, l.cores["a"].prints.at(n))
	require.Equal(t, was, l.cores["a"].me, "these are its own")
	tell(n, 7)
	require.NotEqual(t, was, l.cores["a"].me)
	require.Equal(t, "c", l.cores["a"].revoked.from)
	for range forkBeats - 1 {
		l.tick(time.Second)
	}
	require.NotNil(t, l.cores["a"].revoked, "b has none of the events of c")
	for range 10 {
		l.tick(time.Second)
	}
	require.Nil(t, l.cores["a"].revoked, "it has taken the state of b, since c does not come")
	l.shows("a", "s/x=1\n")
	l.shows("b", "s/x=1\n")
}

// An answer contains the prints of a member that its sender has lost sight of, since the receiver
// may see it.
func TestRestored_AnswersTellPrintsOfMembersOutOfView(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "x"))
	l.deliver(all)
	b, a := l.cores["b"], l.cores["a"]
	l.step("b", View{Others: []Member{{ID: "c"}}})
	require.Nil(t, b.peerOf(a.me))
	require.Equal(t, a.prints.at(a.seen.Get(a.me)), b.printsOut(causal.Vector{}).last(a.me))
}
