package core

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
)

// settled advances the time by seconds. It asserts that all replicas then hold the same, and that
// the calls have succeeded.
func (l *lab) settled(calls ...uint64) {
	l.t.Helper()
	l.pass(8 * time.Second)
	l.equal(l.order...)
	for _, id := range calls {
		d, ended := l.done[id]
		require.True(l.t, ended, "call %d", id)
		require.Nil(l.t, d.Short, "call %d", id)
		require.NoError(l.t, d.Err)
	}
}

// restorable is a cluster in which a snapshot of a exists, and a has since made an acknowledged
// write, which lost, if set, has not received.
func restorable(t *testing.T, lost ...string) (l *lab, snapshot *Core) {
	l = newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	snapshot = frozen(l.cores["a"])
	l.now = l.now.Add(time.Millisecond)
	l.update("a", majority, add("s", "old"))
	for _, n := range lost {
		l.take(between("a", n))
	}
	return l, snapshot
}

// act lets the restored replica write, a moment later.
func (l *lab) act(elem string) uint64 {
	l.now = l.now.Add(time.Millisecond)
	return l.update("a", majority, add("s", elem))
}

// A replica is replaced by a snapshot of its machine, and its first act is a write under a number
// that was used since. It is told, goes on as another replica, and all become equal. Of the two
// writes under one number one may be lost, and nothing that another member did, or that was done
// before the snapshot or after the replica was told.
func TestRestored_TheFirstActIsAWrite(t *testing.T) {
	for name, lost := range map[string][]string{"nothing": nil, "at b": {"b"}, "at c": {"c"}} {
		t.Run("lost "+name, func(t *testing.T) {
			l, snapshot := restorable(t, lost...)
			l.deliver(all)
			require.Nil(t, l.done[l.id].Short)
			l.cores["a"] = snapshot
			was, id := snapshot.Replica(), l.act("new")
			l.pass(3 * time.Second)
			require.Equal(t, was, l.reb[0].Was)
			require.Equal(t, l.cores["a"].Replica(), l.reb[0].Is)
			require.ErrorIs(t, l.done[id].Err, ErrRestored)
			l.update("b", majority, add("s2", "b"))
			l.settled(l.id, l.act("later"))
			require.Len(t, l.reb, 1)
			l.oneOf("s/base=1\ns/later=1\ns/new=1\ns2/b=1\n", "s/base=1\ns/later=1\ns/old=1\ns2/b=1\n")
			if lost == nil { // then a majority has the former one
				l.shows("a", "s/base=1\ns/later=1\ns/old=1\ns2/b=1\n")
			}
		})
	}
}

// oneOf asserts that all members show the same, which is one of these.
func (l *lab) oneOf(want ...string) {
	l.t.Helper()
	got := l.text("a")
	require.Contains(l.t, want, got)
	l.allShow(got)
}

// The restored replica has done nothing since: nothing is lost.
func TestRestored_WhenOthersKnowMoreOfIt(t *testing.T) {
	l, snapshot := restorable(t)
	l.deliver(all)
	l.cores["a"] = snapshot
	l.pass(4 * time.Second)
	require.Len(t, l.reb, 1)
	l.settled(l.act("new"))
	l.oneOf("s/base=1\ns/new=1\ns/old=1\n")
}

// Every member is restored, from snapshots of slightly different moments: each has events that the
// others show it, and keeps its state.
func TestRestored_AllMembers(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	snapshots := map[string]*Core{}
	for i, n := range l.order {
		l.update(n, majority, add("s", n))
		l.settled(l.id)
		l.update(l.order[(i+1)%3], majority, add("s2", n))
		l.settled(l.id)
		snapshots[n] = frozen(l.cores[n])
	}
	for i, n := range l.order {
		l.cores[n] = snapshots[n]
		l.update(n, Level{}, count("c", "n", int64(i+1)))
	}
	l.pass(12 * time.Second)
	l.equal(l.order...)
	got := l.text("a")
	require.Contains(t, got, "s/a=1\ns/b=1\ns/c=1\ns2/a=1\n")
}

// Both of two writes under one number have been acknowledged by a majority before anybody notices.
// One of them is lost, and nothing that another replica did; also if the restored process ends
// before it hears of it, by a kill or in another incarnation.
func TestLimit_ARestoredMemberLosesAnAcknowledgedWrite(t *testing.T) {
	for name, then := range map[string]func(l *lab, snapshot *Core){
		"it goes on":             func(*lab, *Core) {},
		"restored twice":         func(l *lab, snapshot *Core) { l.cores["a"] = snapshot },
		"killed":                 func(l *lab, _ *Core) { l.start("a"); l.meet() },
		"in another incarnation": func(l *lab, _ *Core) { l.again("a"); l.meet() },
	} {
		t.Run(name, func(t *testing.T) {
			l, snapshot := restorable(t, "c")
			l.deliver(all)
			l.cores["a"] = frozen(snapshot)
			l.act("new")
			l.take(between("a", "b")) // lost
			l.deliver(of(wire.ReplicatorPush))
			l.take(between("c", "b")) // lost
			l.deliver(all)
			require.Nil(t, l.done[l.id].Short)
			require.NoError(t, l.done[l.id].Err)
			l.shows("b", "s/base=1\ns/old=1\n")
			l.shows("c", "s/base=1\ns/new=1\n")
			then(l, snapshot)
			l.update("b", Level{}, add("s2", "b"))
			l.update("c", Level{}, add("s2", "c"))
			l.pass(30 * time.Second)
			l.settled()
			l.oneOf("s/base=1\ns/new=1\ns2/b=1\ns2/c=1\n", "s/base=1\ns/old=1\ns2/b=1\ns2/c=1\n")
		})
	}
}

// Peers that have other events under the numbers of the restored replica do not acknowledge its
// events by sending their vectors, in a heartbeat or in a push that follows those other events.
func TestRestored_NobodyAcknowledgesOtherEvents(t *testing.T) {
	for name, send := range map[string]func(l *lab){
		"by heartbeats": func(l *lab) {
			l.beatOut("b", "a")
			l.beatOut("c", "a")
			l.deliver(between("b", "a"))
		},
		"by pushes": func(l *lab) {
			l.update("b", Level{}, add("s", "b"))
			l.update("c", Level{}, add("s", "c"))
			l.deliver(of(wire.ReplicatorPush))
			l.deliver(all)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, snapshot := restorable(t)
			l.deliver(all)
			l.cores["a"] = snapshot
			id := l.act("new")
			l.take(of(wire.ReplicatorPush)) // lost: peers send their vectors
			send(l)
			d, ended := l.done[id]
			require.True(t, !ended || errors.Is(d.Err, ErrRestored))
			l.tick(time.Second)
			require.ErrorIs(t, l.done[id].Err, ErrRestored)
			require.Len(t, l.reb, 1, "noticed")
			l.settled()
		})
	}
}

// beatOut puts a heartbeat from one replica to another into the box.
func (l *lab) beatOut(from, to string) {
	c := l.cores[from]
	c.now, c.effects = l.now, c.effects[:0]
	c.herald().sendBeat(c.peers.of(to))
	for _, e := range c.effects {
		if s, ok := e.(Send); ok {
			l.box = append(l.box, mail{from, s.Member, c.Replica(), s})
		}
	}
}

// Every call under way ends, and once: also one that is answered in the same step, and one that
// waits for the disk.
func TestRestored_EndsEveryCall(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	snapshot := frozen(l.cores["a"])
	l.update("a", majority, add("s", "old"))
	l.deliver(all)
	l.cores["a"] = snapshot
	l.disks["a"].held = true
	var calls []uint64
	for i, level := range []Level{{}, majority, {Kind: All}} {
		calls = append(calls, l.update("a", level, add("s", string(rune('x'+i)))))
	}
	l.id++
	calls = append(calls, l.id)
	l.step("a", Read{ID: l.id, Level: majority, Deadline: l.now.Add(time.Hour)})
	calls = append(calls, l.follows("a", majority, add("s", "open")))
	l.beatOut("b", "a")
	l.deliver(between("b", "a"))
	require.Len(t, l.reb, 1)
	for _, id := range calls {
		require.Contains(t, l.done, id)
		require.ErrorIs(t, l.done[id].Err, ErrRestored, "call %d", id)
	}
	require.False(t, l.cores["a"].disk.kept, "its disk went back, too")
	l.sync("a")
	l.settled(l.update("a", majority, add("s", "later")))
	l.crash("a")
	require.Empty(t, l.boot("a").holes)
	l.meet()
	l.settled()
}

// A replica that merely received messages late is not restored: late, duplicated and lost messages
// are no fork.
func TestHashes_AreTheSameWhateverTheWay(t *testing.T) {
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
			if l.cores[n].Seen().Get(p.replica) > 0 {
				c := l.cores[n]
				require.NotZero(t, c.history.HashOf(p.replica), "%s of %s", n, p.ID)
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
	l.act("x")
	l.take(of(wire.ReplicatorPush)) // lost
	l.act("y")
	l.deliver(of(wire.ReplicatorPush))
	require.Positive(t, l.cores["b"].Stats().Forks)
	l.shows("b", "s/base=1\ns/old=1\n")
	l.settled()
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
		l.cores[n].out.Asked(l.now, "a", 1<<60)
	}
	l.cores["a"] = snapshot
	l.settled()
	require.Empty(t, l.reb)
}

// An answer contains the event hashes of a member that its sender has lost sight of, since the
// receiver may see it.
func TestRestored_AnswersTellHashesOfMembersOutOfView(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "x"))
	l.deliver(all)
	b, a := l.cores["b"], l.cores["a"]
	l.see("b", "c")
	require.Nil(t, b.peers.at(a.Replica()))
	require.Equal(t, a.history.HashOf(a.Replica()),
		hashesOut(&b.history, b.peers, &b.members)[a.Replica()])
}
