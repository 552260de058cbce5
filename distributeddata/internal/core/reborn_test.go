package core

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// frozen returns a copy of everything that a replica holds, as a snapshot of its machine does.
func frozen(c *Core) *Core {
	n := *c
	n.peers = nil
	for _, p := range c.peers {
		q := *p
		q.pushed = slices.Clone(p.pushed)
		n.peers = append(n.peers, &q)
	}
	n.log.origins = map[causal.Replica]*originLog{}
	for r, o := range c.log.origins {
		q := *o
		q.events = slices.Clone(o.events)
		q.room = q.events
		n.log.origins[r] = &q
	}
	n.batch = batch{stores: map[string]causal.Store{}}
	n.outgoing, n.heardOf = map[string]*answer{}, maps.Clone(c.heardOf)
	n.prints.of, n.undos = slices.Clone(c.prints.of), slices.Clone(c.undos)
	n.ops, n.deadlines, n.calls = nil, nil, 0
	n.effects, n.touched, n.ledger.touched = nil, nil, nil
	n.bases, n.awaiting, n.held, n.open = slices.Clone(c.bases), nil, nil, nil
	n.window.waiting = slices.Clone(c.window.waiting)
	for r, h := range n.heardOf {
		h.last = slices.Clone(h.last)
		n.heardOf[r] = h
	}
	return &n
}

// settled lets seconds pass, and asserts that all hold the same then, and that calls have ended well.
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

// A replica is replaced by a snapshot of its machine, whose first act is a write under numbers that were used since.
// Before, peers took it for a duplicate and acknowledged it, and mending erased it [R57].
func TestRestored_TheFirstActIsAWrite(t *testing.T) {
	tests := map[string]struct {
		since [][]op // what the replica did after the snapshot, acknowledged at a majority
		acts  [][]op // what the restored one does
		want  string
	}{
		"another key":    {[][]op{{add("s", "old")}}, [][]op{{add("s2", "new")}}, "s/base=1\ns/old=1\ns2/new=1\n"},
		"the same key":   {[][]op{{add("s", "old")}}, [][]op{{add("s", "new")}}, "s/base=1\ns/new=1\ns/old=1\n"},
		"the same again": {[][]op{{add("s", "old")}}, [][]op{{add("s", "old")}}, "s/base=1\ns/old=1\n"},
		"five since, one now": {
			[][]op{{add("s", "1")}, {add("s", "2")}, {add("s", "3")}, {add("s", "4")}, {add("s", "5")}},
			[][]op{{add("s", "new")}}, "s/1=1\ns/2=1\ns/3=1\ns/4=1\ns/5=1\ns/base=1\ns/new=1\n",
		},
		"one since, three now": {
			[][]op{{add("s", "old")}},
			[][]op{{add("s", "1")}, {remove("s", "1"), add("s", "2")}, {add("s2", "3")}}, "s/2=1\ns/base=1\ns/old=1\ns2/3=1\n",
		},
		"counters": {
			[][]op{{count("c", "n", 5)}, {count("c", "n", 7)}}, [][]op{{count("c", "n", 100)}, {count("c", "n", 1000)}}, "c/n=1113\ns/base=1\n",
		},
		"a removal": {[][]op{{add("s", "old")}}, [][]op{{remove("s", "base")}}, "s/old=1\n"},
		"a deletion": {
			[][]op{{add("s", "old")}}, [][]op{{op{kind: opDelete, key: "s"}}, {add("s", "new")}}, "s/new=1\ns/old=1\n",
		},
		"a reset of another's counter": {
			[][]op{{add("s2", "old")}}, [][]op{{drop("c", "n")}}, "s/base=1\ns2/old=1\n",
		},
		"registers": {
			[][]op{{op{kind: opWrite, key: "r", sub: "x", value: 1}}}, [][]op{{op{kind: opWrite, key: "r", sub: "x", value: 2}}}, "r/x=2\ns/base=1\n",
		},
	}
	for name, test := range tests {
		for _, lost := range []string{"", "a>c", "a>b"} { // what one peer never got before the restore
			t.Run(name+" lost "+lost, func(t *testing.T) {
				l, was := playRestored(t, lost, nil, test.since, test.acts)
				for _, n := range l.order {
					want := test.want
					if _, counts := test.since[0][0], test.since[0][0].kind == opCount; !counts && name != "a reset of another's counter" {
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

// playRestored plays a replica a that writes, of which a snapshot is taken, that writes on, and that is then replaced
// by the snapshot, which writes. Lost is the link on which everything after the snapshot is lost until then. It returns
// the id of a before.
func playRestored(t *testing.T, lost string, had []op, since, acts [][]op) (*lab, causal.Replica) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, count("c", "n", 1))
	l.update("a", majority, append([]op{add("s", "base")}, had...)...)
	l.settled(l.id)
	snapshot := frozen(l.cores["a"])
	was := snapshot.Replica()
	for _, ops := range since {
		l.now = l.now.Add(time.Millisecond)
		id := l.update("a", majority, ops...)
		if lost != "" {
			l.take(between("a", lost[2:]))
		}
		l.deliver(all)
		require.Nil(t, l.done[id].Short)
	}
	l.now = l.now.Add(3 * time.Millisecond)
	l.cores["a"] = snapshot
	var calls []uint64
	for _, ops := range acts {
		l.now = l.now.Add(time.Millisecond)
		calls = append(calls, l.update("a", majority, ops...))
	}
	l.settled(calls...)
	return l, was
}

// What the restored replica did to its own counter slots is done again exactly: what it added is added to what the
// slot holds by now, and a reset takes off what it had seen there, which is what the snapshot held.
func TestRestored_Counters(t *testing.T) {
	n := func(k int64) op { return count("c2", "n", k) }
	reset, gone := drop("c2", "n"), op{kind: opDelete, key: "c2"}
	other := [][]op{{add("s", "old")}}
	tests := map[string]struct {
		had         []op
		since, acts [][]op
		want        int64 // 0: no counter there
	}{
		"both added":              {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{n(100)}, {n(1000)}}, 1115},
		"one added":               {[]op{n(10)}, other, [][]op{{n(100)}, {n(1000)}}, 1110},
		"reset after it grew":     {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{reset}}, 5},
		"reset":                   {[]op{n(10)}, other, [][]op{{reset}}, 0},
		"deleted after it grew":   {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{gone}}, 5},
		"deleted":                 {[]op{n(10)}, other, [][]op{{gone}}, 0},
		"added and reset":         {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{n(100)}, {reset}}, 5},
		"added and deleted":       {[]op{n(10)}, [][]op{{n(5)}, {n(7)}}, [][]op{{n(100)}, {gone}}, 12},
		"reset and added":         {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{reset}, {n(100)}}, 105},
		"added, reset, added":     {[]op{n(10)}, [][]op{{n(5)}}, [][]op{{n(100)}, {reset}, {n(1000)}}, 1005},
		"reset before":            {[]op{n(10)}, [][]op{{reset}}, [][]op{{n(100)}}, 100},
		"reset and grown before":  {[]op{n(10)}, [][]op{{reset}, {n(5)}}, [][]op{{n(100)}}, 105},
		"reset by both":           {[]op{n(10)}, [][]op{{reset}, {n(5)}}, [][]op{{reset}, {n(100)}}, 105},
		"new":                     {nil, [][]op{{n(5)}}, [][]op{{n(100)}, {reset}, {n(1000)}}, 1005},
		"reset where it is older": {[]op{n(10)}, [][]op{{n(5)}, {n(7)}, {n(9)}}, [][]op{{reset}}, 21},
	}
	for name, test := range tests {
		for _, lost := range []string{"", "a>c", "a>b"} {
			if lost != "" && len(test.acts) > len(test.since) {
				continue // a peer takes numbers that the original never used: counted twice, as R57 says
			}
			t.Run(name+" lost "+lost, func(t *testing.T) {
				l, _ := playRestored(t, lost, test.had, test.since, test.acts)
				for _, at := range l.order {
					got, err := shown(l.cores[at].Keys())
					require.NoError(t, err)
					if test.want == 0 {
						require.NotContains(t, got, "c2/n=", at)
					} else {
						require.Contains(t, got, fmt.Sprintf("c2/n=%d\n", test.want), at)
					}
				}
				require.Len(t, l.reb, 1)
			})
		}
	}
}

// restorable is a cluster of which a has a snapshot, and has gone on since with an acknowledged write.
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

// The life of the process ends after others have told it that its numbers were used, and before one of them has told
// it the state on which it does its events again.
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

// The last write before the end of the original, which nobody had acknowledged, is still under way when the restored
// one writes, and each of the peers hears of another one first.
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

// Peers that have other events under the numbers of the restored replica do not acknowledge its events by telling
// their vectors: in a heartbeat, or in a push that follows those other events.
func TestRestored_NobodyAcknowledgesOtherEvents(t *testing.T) {
	t.Run("by heartbeats", func(t *testing.T) {
		l, snapshot := restorable(t)
		l.deliver(all)
		l.cores["a"] = snapshot
		id := l.act("new")
		l.take(of(wire.ReplicatorPush)) // lost: peers tell their vectors
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

// beatOut puts a heartbeat of one replica to another into the box.
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

// While the restored replica waits for the state of another, updates wait too, within their time.
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
	l.step("a", Update{ID: l.id, Deadline: l.now.Add(time.Second), Modify: func(*Txn) error { return nil }})
	require.NotContains(t, l.done, second)
	l.now = l.now.Add(time.Second)
	l.step("a", Wake{})
	require.ErrorIs(t, l.done[l.id].Err, errRestored)
	l.settled(first, second)
	l.shows("b", "s/base=1\ns/later=1\ns/new=1\ns/old=1\n")
}

// The member that has told the restored replica of the other events does not answer: it may have been restored too, and
// wait for this one's state. Another one is asked.
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

// A replica that was merely slow to hear is the same one: late, doubled and lost messages are no fork.
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

// A peer that has the other events does not take up those behind the restored ones.
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

// A replica that is restored, and did nothing since the snapshot, is the same one to the others. It has asked them for
// what it lacked since, and its questions begin again with the numbers that these had.
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

// A member that leaves in order while it waits for the state on which it does its events again has handed nothing over
// yet.
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

// A member that has the events of a restored replica, and hears of others under their numbers, tells that replica of both:
// the one that has the others may not reach it.
func TestRestored_IsToldOfEventsThatItCannotHearOf(t *testing.T) {
	l := newLab(t, "a", "b")
	was := l.cores["a"].me
	l.update("a", Level{}, add("s", "x"))
	l.deliver(all)
	n := l.cores["a"].seen.Get(was)
	tell := func(n uint64, prints ...imprint) {
		l.step("a", Receive{
			Member: "b", From: l.cores["b"].me, To: was, Manifest: wire.ReplicatorAck, Payload: encodeOther("c", n, prints),
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

// An answer tells the prints of a member that its sender has lost sight of: the receiver may see it.
func TestRestored_AnswersTellPrintsOfMembersOutOfView(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "x"))
	l.deliver(all)
	b, a := l.cores["b"], l.cores["a"]
	l.step("b", View{Others: []Member{{ID: "c"}}})
	require.Nil(t, b.peerOf(a.me))
	require.Equal(t, a.prints.at(a.seen.Get(a.me)), b.printsOut(causal.Vector{}).last(a.me))
}
