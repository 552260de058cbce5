package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// The traps that simulation and model have shown to be fatal, each as a story of a few steps.

func TestPush_RemoveThatOvertakesItsAddWaits(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "x"))
	l.deliver(between("a", "b"))
	l.update("b", Level{}, remove("s", "x"))
	l.deliver(between("b", "c"))
	l.shows("c", "")
	l.deliver(all)
	l.allShow("")
}

func TestPush_CausesOfOtherReplicasComeFirst(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "x"))
	l.deliver(between("b", "c"))
	l.update("c", Level{}, add("s", "x"))
	l.deliver(between("c", "a")) // c1 replaces b1, which a does not have
	l.shows("a", "")
	require.EqualValues(t, 1, l.cores["a"].Stats().Waiting)
	l.deliver(all)
	l.shows("a", "s/x=1\n")
	require.Equal(t, stateBytes(l.cores["b"]), stateBytes(l.cores["a"]))
}

// An answer may contain what has arrived by itself meanwhile and been removed since.
func TestRepair_WhatIsCoveredIsNotAppliedAgain(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "x"))
	late := l.take(between("a", "c"))
	l.deliver(between("a", "b"))
	l.beat("a")
	l.deliver(of(wire.ReplicatorBeat)) // c sees that it lacks a's event, and asks
	l.deliver(of(wire.ReplicatorRequest))
	answer := l.take(of(wire.ReplicatorPart))
	require.NotEmpty(t, answer)
	l.hand(late...)
	l.shows("c", "s/x=1\n")
	l.update("b", Level{}, remove("s", "x"))
	l.deliver(between("b", "c"))
	l.shows("c", "")
	applied := l.cores["c"].Stats().Deltas
	l.hand(answer...)
	c := l.cores["c"]
	require.Equal(t, applied+1, c.Stats().Deltas)
	l.shows("c", "")
	events, ok := c.history.Events(l.cores["a"].Replica(), 1)
	require.True(t, ok)
	require.Len(t, events, 1, "or who is answered from the log gets it twice")
}

// A replica that loses sight of a member forgets that it answered it. A duplicate of an earlier
// request is then answered again, from a different state, under the same id.
func TestRequest_PartsOfTwoAnswersDoNotMix(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	missed := func(n int) {
		for i := range n {
			l.update("a", Level{}, add("s", fmt.Sprint("element ", n, i)), add("s1", fmt.Sprint(i)))
		}
		l.take(all)
	}
	missed(5)
	l.beat("a")
	l.take(between("b", "c"))
	l.deliver(of(wire.ReplicatorBeat)) // c sees that it lacks a's events, and asks
	request := l.take(func(m mail) bool {
		return m.from == "c" && m.to == "a" && m.send.Manifest == wire.ReplicatorRequest
	})
	require.NotEmpty(t, request)
	l.hand(request[0])
	parts := l.take(between("a", "c"))
	require.Greater(t, len(parts), 1)
	l.hand(parts[0])
	l.take(all)

	l.see("a", "b")
	missed(7)
	l.see("a", "bc")
	l.take(all)
	c := l.cores["c"]
	c.herald().sendBeat(c.peers.of("a")) // a knows c again
	l.hand(mail{from: "c", to: "a", replica: c.Replica(), send: c.effects[len(c.effects)-1].(Send)})
	l.take(all)
	l.hand(request[0]) // a duplicate
	for range 10 {
		l.deliver(func(m mail) bool {
			return m.send.Manifest == wire.ReplicatorPart || m.send.Manifest == wire.ReplicatorMore
		})
		l.tick(time.Second)
	}
	require.Zero(t, c.Stats().Malformed)
	require.Equal(t, stateBytes(l.cores["a"]), stateBytes(c))
}

// A burst of updates is one message per member, and what was added and removed in it is not sent.
func TestPush_BurstIsOneMessage(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	for _, e := range []string{"x", "y", "z"} {
		l.quiet("a", add("s", e))
	}
	l.quiet("a", remove("s", "y"))
	require.Empty(t, l.box)
	require.Equal(t, l.now, l.cores["a"].NextWake())
	l.step("a", Wake{})
	require.Len(t, l.box, 2)
	l.deliver(all)
	l.shows("b", "s/x=1\ns/z=1\n")
	require.True(t, l.cores["b"].Seen().Equal(l.cores["a"].Seen()))
	require.EqualValues(t, 1, l.cores["a"].Stats().Events, "nobody waited for any of them")
}

// Atoms of one event have one dot, so the event must not be visible before it has ended.
func TestQuiet_NobodySeesAnEventThatGoesOn(t *testing.T) {
	l := newLab(t, "a", "b")
	l.quiet("a", count("c", "k", 1))
	l.shows("a", "")
	l.answered("a", count("c", "k", 1))
	l.shows("a", "c/k=2\n")
	l.quiet("a", count("c", "k", 1))
	l.step("a", Read{ID: 99})
	l.shows("a", "c/k=3\n")
	l.deliver(all)
	l.shows("b", "c/k=3\n")
	require.EqualValues(t, 2, l.cores["a"].Stats().Events)
}

func TestQuiet_RefusedOneLeavesNoTraceInTheOthersEvent(t *testing.T) {
	l := newLab(t, "a", "b")
	l.quiet("a", count("c", "k", 1), add("s", "x"))
	l.step("a", Update{Modify: func(t *history.Txn) error {
		return errors.Join(perform(t, []op{count("c", "k", 10), remove("s", "x"), add("s1", "y")}),
			errRefused)
	}})
	require.ErrorIs(t, l.done[0].Err, errRefused)
	l.quiet("a", count("c", "k", 1))
	l.tick(0)
	for _, name := range l.order {
		l.shows(name, "c/k=2\ns/x=1\n")
	}
}

func TestQuiet_WhatAmountsToNothingUsesNoNumber(t *testing.T) {
	l := newLab(t, "a", "b")
	l.quiet("a", add("s", "x"))
	l.quiet("a", remove("s", "x"))
	l.tick(0)
	require.Zero(t, l.cores["a"].Stats().Events)
	require.Equal(t, l.cores["a"].rhythm.at, l.cores["a"].NextWake(), "nothing left to push")
	l.update("a", Level{}, add("s", "y"))
	l.deliver(all)
	l.shows("b", "s/y=1\n")
}

// A burst of large updates goes out in pushes that fit into a message.
func TestQuiet_EventsAreBounded(t *testing.T) {
	l := newLab(t, "a", "b")
	value := strings.Repeat("v", 10_000)
	for i := range 100 {
		l.quiet("a", add("s", fmt.Sprint(i, value)))
	}
	l.step("a", Wake{})
	require.Greater(t, len(l.box), 10)
	for _, m := range l.box {
		require.Equal(t, wire.ReplicatorPush, m.send.Manifest)
		require.Less(t, len(m.send.Payload), wire.MaxPayload)
	}
	l.deliver(all)
	require.Equal(t, stateBytes(l.cores["a"]), stateBytes(l.cores["b"]))
}

// Gathered events go out before any foreign event is applied: no event may follow one that no other
// replica can have yet.
func TestPush_GoesOutBeforeOthersAreApplied(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "theirs"))
	l.quiet("a", add("s", "ours"))
	l.deliver(between("b", "a"))
	l.quiet("a", add("s", "later"))
	l.step("a", Wake{})
	l.deliver(between("a", "c")) // the first push must not wait for b's event there
	l.shows("c", "s/ours=1\n")
	l.deliver(all)
	l.shows("c", "s/later=1\ns/ours=1\ns/theirs=1\n")
}

// A member restarts under its id with a clock that was set back. The others treat it as an earlier
// one, and say so.
func TestRestart_WithAClockThatWasSetBack(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "x"))
	l.deliver(all)
	now := l.now
	l.now = now.Add(-24 * time.Hour)
	l.start("a")
	l.now = now
	l.see("a", "bc")
	l.rounds(4, all)
	require.True(t, l.cores["a"].Ready())
	require.Equal(t, l.cores["a"].Replica(), l.cores["b"].peers.of("a").replica)
	id := l.update("a", Level{Kind: All}, add("s", "y"))
	l.rounds(2, all)
	l.succeeded(id)
	l.shows("c", "s/x=1\ns/y=1\n")
}

// The causes of a push may have been lost with all that had them. Such a push must not fill the
// window forever.
func TestWindow_PushesWhoseCausesDiedLeave(t *testing.T) {
	l := newLab(t, "a", "b", "c", "d")
	l.update("a", Level{}, add("s", "x"))
	l.deliver(between("a", "b"))
	l.update("b", Level{}, add("s", "y"))
	l.deliver(between("b", "c")) // follows a's event, which c lacks
	l.take(all)
	c := l.cores["c"]
	require.Len(t, c.window.waiting, 1)
	l.cores["a"], l.cores["b"] = nil, nil
	l.rounds(3, all)
	require.Len(t, c.window.waiting, 1, "it may come")
	l.rounds(3, all)
	require.Empty(t, c.window.waiting)
	require.Zero(t, c.window.used)
	l.shows("c", "")
}

func TestUpdate_SiblingsOfOneDotSurviveARemove(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"), add("s", "y"), add("s1", "x"))
	l.deliver(all)
	l.update("b", Level{}, remove("s", "x"))
	l.deliver(all)
	l.shows("a", "s/y=1\ns1/x=1\n")
	l.shows("b", "s/y=1\ns1/x=1\n")
}

func TestAck_NotFromTheWindow(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "x"))
	l.deliver(between("b", "a"))
	id := l.update("a", Level{Kind: Count, Nodes: 3}, add("s", "y"))
	l.deliver(between("a", "c")) // waits there for b's event
	l.deliver(between("c", "a"))
	require.NotContains(t, l.done, id)
	require.Zero(t, l.cores["a"].peers.of("c").acked)
	l.deliver(all)
	require.Nil(t, l.done[id].Short)
	require.EqualValues(t, 1, l.cores["a"].peers.of("c").acked)
}

func TestRepair_AnybodyServesADeadOriginClosed(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "x"), add("s", "z"))
	l.deliver(between("a", "b"))
	l.update("b", Level{}, add("s", "x")) // replaces a's atom
	l.take(all)                           // nothing ever reaches c
	l.cores["a"] = nil
	l.meet()
	l.shows("c", "s/x=1\ns/z=1\n")
	require.True(t, l.cores["c"].Seen().Equal(l.cores["b"].Seen()))
}

func TestBulk_ThirdPartyPushAndLocalUpdateDuringTheTransfer(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	for _, e := range []string{"p", "q", "r", "v", "w"} {
		l.update("b", Level{}, add("s", e))
	}
	l.take(all)
	l.cutLogs("b")
	l.beat("b")
	l.deliver(func(m mail) bool { // the heartbeat, and what it requests
		return m.send.Manifest == wire.ReplicatorBeat &&
			(between("b", "a")(m) || between("a", "b")(m))
	})
	l.deliver(of(wire.ReplicatorRequest))
	parts := l.take(of(wire.ReplicatorPart))
	require.Greater(t, len(parts), 1, "the snapshot should need several parts")
	l.hand(parts[0])
	l.update("c", Level{}, add("s", "p"))
	l.deliver(between("c", "a"))
	l.update("a", Level{}, add("s", "q"), remove("s", "r"))
	l.shows("a", "s/p=1\ns/q=1\n") // the parts show nothing yet
	l.hand(parts[1:]...)
	l.deliver(all)
	l.pass(3 * time.Second)
	l.allShow("s/p=1\ns/q=1\ns/r=1\ns/v=1\ns/w=1\n")
	require.EqualValues(t, 1, l.cores["a"].Stats().Bulks)
}

func TestBulk_FloorRisesWithTheJoin(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "x"))
	l.update("b", Level{}, remove("s", "x"))
	l.take(all)
	l.cutLogs("b")
	b := l.cores["b"]
	l.beat("b")
	l.deliver(func(m mail) bool { return m.to != "c" && m.from != "c" })
	require.EqualValues(t, 1, l.cores["a"].Stats().Bulks)
	_, ok := l.cores["a"].history.Since(causal.MakeVector(causal.Dot{Replica: b.Replica(), N: 1}))
	require.False(t, ok, "a has no record of the removal, so it must not answer from its log")

	l.update("b", Level{}, add("s", "y"))
	l.deliver(between("b", "a"))
	_, ok = l.cores["a"].history.Since(causal.MakeVector(causal.Dot{Replica: b.Replica(), N: 1}))
	require.False(t, ok, "nor when it has one of what came next")
	d, ok := l.cores["a"].history.Since(causal.MakeVector(causal.Dot{Replica: b.Replica(), N: 2}))
	require.True(t, ok)
	require.Len(t, d.Events, 1)
}

// A request that the network duplicated is not answered anew.
func TestRequest_DoubledIsAnsweredOnce(t *testing.T) {
	l := newLab(t, "a", "b")
	for _, e := range []string{"p", "q", "r", "v", "w"} {
		l.update("b", Level{}, add("s", e))
	}
	l.take(all)
	l.beat("b")
	l.deliver(of(wire.ReplicatorBeat))
	requests := l.take(of(wire.ReplicatorRequest))
	require.Len(t, requests, 1)
	l.hand(requests[0])
	first := l.take(of(wire.ReplicatorPart))
	l.update("b", Level{}, add("s", "later"))
	l.take(of(wire.ReplicatorPush))
	l.cutLogs("b")
	l.hand(requests[0])
	second := l.take(of(wire.ReplicatorPart))
	require.Subset(t, first, second, "what has not arrived, once more")
	l.hand(first[0])
	l.hand(append(second, first[1:]...)...)
	l.deliver(all)
	l.pass(3 * time.Second)
	require.Zero(t, l.cores["a"].Stats().Malformed)
	require.Equal(t, stateBytes(l.cores["b"]), stateBytes(l.cores["a"]))
}

// An acknowledgement says that a peer has seen the reset, but not what it had done before it saw
// it.
func TestMark_AcknowledgementIsNoKnowledge(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, count("c", "k", 1))
	l.deliver(all)
	l.update("a", Level{}, count("c", "k", 1)) // delayed on its way to b
	late := l.take(between("a", "b"))
	l.take(all)
	l.update("b", Level{}, drop("c", "k")) // has seen only the first increment
	l.deliver(between("b", "a"))
	l.deliver(func(m mail) bool { return m.to == "b" && m.send.Manifest == wire.ReplicatorAck })
	l.beat("b") // housekeeping, knowing only a's acknowledgement
	l.hand(late...)
	l.shows("b", "c/k=1\n")
	l.deliver(all)
	l.pass(3 * time.Second)
	l.allShow("c/k=1\n")
}

// A mark stays while an increment that the slot's owner made before it knew of the reset may be in
// flight: the increment carries the old total.
func TestMark_StaysUntilTheOwnersEventsAreHere(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, count("c", "x", 1))
	l.deliver(all)
	l.update("b", Level{}, drop("c", "x"))
	l.update("a", Level{}, count("c", "x", 2))
	late := l.take(between("a", "c"))
	l.deliver(all)
	l.beat("a") // its heartbeats say that it knows of the reset
	l.deliver(of(wire.ReplicatorBeat))
	l.beat("c") // housekeeping
	l.hand(late...)
	l.deliver(all)
	l.allShow("c/x=2\n")
}

// A deleted counter leaves nothing, also where replicas that counted have been replaced before it
// was deleted. So a month of counters that come and go, with restarts, costs nothing at rest.
func TestMark_DeletedCountersOfDepartedReplicasLeaveNothing(t *testing.T) {
	for _, disks := range []bool{false, true} {
		l := newLab(t, "a", "b", "c")
		if disks {
			l = newDiskLab(t, "a", "b", "c")
		}
		rest := -1
		for day := range 10 {
			for i := range 5 {
				for _, n := range l.order {
					l.update(n, Level{}, count(fmt.Sprint("c", i), "n", 1))
					l.deliver(all)
				}
			}
			who := l.order[day%3]
			if disks {
				l.crash(who)
				l.boot(who)
			} else {
				l.start(who)
			}
			l.meet()
			require.True(t, l.cores[who].Ready())
			for i := range 5 {
				l.update(l.order[(day+1)%3], majority, op{kind: opDelete, key: fmt.Sprint("c", i)})
				l.deliver(all)
			}
			l.pass((2*formerBeats + 10) * time.Second)
			for _, n := range l.order {
				require.Zero(t, l.cores[n].Keys().Len(), "day %d, %s, disks %v", day, n, disks)
				l.equal("a", n)
			}
			if !disks {
				continue
			}
			atoms := 0
			for key := range l.disks["a"].rows {
				if n, ok := parseRow(key); ok && !n.vector {
					atoms++
				}
			}
			if rest < 0 {
				rest = atoms
			}
			require.Equal(t, rest, atoms, "rows of values at rest")
		}
	}
}

// A mark stays while a member may still hold increments of the departed replica.
func TestMark_OfADepartedReplicaStaysWhileAMemberIsAway(t *testing.T) {
	l := newLab(t, "a", "b", "c", "d", "e")
	l.update("b", majority, count("c", "n", 5))
	l.deliver(all)
	l.update("b", Level{}, count("c", "n", 2))
	l.deliver(between("b", "e")) // e alone has it
	l.take(all)
	l.order = []string{"a", "b", "c", "d"}
	l.start("b")
	l.meets(3)
	require.True(t, l.cores["b"].Ready())
	l.update("a", majority, op{kind: opDelete, key: "c"})
	l.deliver(all)
	l.pass((4 * formerBeats) * time.Second)
	l.order = append(l.order, "e")
	l.meets(3)
	l.allShow("c/n=2\n")
}

// A replica runs although this member has never seen it: its events came from another member. A
// mark stays for what it does before it knows of the reset.
func TestMark_OfAReplicaThatOnlyOthersSee(t *testing.T) {
	l := newLab(t, "a", "b")
	hidden := func(m mail) bool { // x reaches a alone, and its joining is not told to b
		return m.from == "x" && m.to == "b" || m.from == "b" && m.to == "x" ||
			m.send.Manifest == wire.ReplicatorMembers
	}
	reach := func(m mail) bool { return !hidden(m) }
	l.order = append(l.order, "x")
	l.start("x")
	l.order = l.order[:2]
	l.see("x", "a")
	l.see("a", "bx")
	l.update("x", Level{}, count("c", "n", 7))
	l.deliver(reach)
	l.take(all)
	for _, n := range []string{"x", "a", "b", "a", "b"} {
		l.beat(n)
		l.deliver(reach)
		l.take(all)
	}
	l.shows("b", "c/n=7\n")
	l.update("a", majority, op{kind: opDelete, key: "c"})
	l.deliver(func(m mail) bool { return reach(m) && m.to != "x" })
	l.take(all)
	l.shows("b", "")
	for range 5 {
		l.beat("b")
		l.deliver(between("a", "b"))
		l.take(all)
	}
	l.update("x", Level{}, count("c", "n", 6)) // which does not know of the reset
	l.order = append(l.order, "x")
	l.meets(3)
	l.allShow("c/n=6\n")
}

// A member that was forgotten without having handed over what it held may come back with it, in
// its next life or from its disk. The mark of a counter that was deleted meanwhile stays for it.
func TestMark_OfAForgottenMemberThatComesBack(t *testing.T) {
	for _, disks := range []bool{false, true} {
		t.Run(fmt.Sprint("disks ", disks), func(t *testing.T) {
			l := departing(t, disks)
			l.update("d", Level{}, count("c", "n", 2)) // no other member receives it
			l.take(all)
			if l.order = l.order[:3]; disks {
				l.crash("d")
			}
			l.meets(4) // d is out of view
			l.forget("a", "d", false)
			l.deliver(all)
			require.Equal(t, quorum.Gone, l.cores["a"].members.Of("d").Rank)
			l.update("a", majority, op{kind: opDelete, key: "c"})
			l.deliver(all)
			l.pass((4 * formerBeats) * time.Second)
			if l.order = append(l.order, "d"); disks {
				l.boot("d")
			} else {
				l.again("d")
			}
			l.meets(3)
			l.allShow("c/n=2\n")
		})
	}
}

// A member that leaves in order hands over all that it has done, so it leaves no marks.
func TestMark_OfAMemberThatHasHandedOverLeavesNothing(t *testing.T) {
	for _, disks := range []bool{false, true} {
		l := departing(t, disks)
		l.leave("d")
		l.deliver(all)
		l.pass(3 * time.Second)
		require.Equal(t, quorum.Gone, l.cores["a"].members.Of("d").Rank)
		if l.order = l.order[:3]; disks {
			l.crash("d")
		}
		l.update("a", majority, op{kind: opDelete, key: "c"})
		l.deliver(all)
		l.meet()
		l.pass((2*formerBeats + 10) * time.Second)
		for _, n := range l.order {
			require.Zero(t, l.cores[n].Keys().Len(), "%s, disks %v", n, disks)
		}
	}
}

// departing returns a lab of four members, of which d has counted.
func departing(t *testing.T, disks bool) *lab {
	l := newLabOf(t, 2)
	if l.order = []string{"a", "b", "c", "d"}; disks {
		l = newDiskLabOf(t, 2, l.order...)
	} else {
		for _, n := range l.order {
			l.start(n)
		}
	}
	l.meets(2)
	l.update("d", majority, count("c", "n", 5))
	l.deliver(all)
	l.allReady()
	l.allShow("c/n=5\n")
	return l
}

// A reset that arrives after a concurrent increment finds no atom to remove. Its mark alone changes
// the value, and subscribers must be notified [R42].
func TestChanged_AResetThatArrivesAsAMarkAlone(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, count("c", "k", 5))
	l.deliver(all)
	l.update("b", Level{}, drop("c", "k"))
	l.update("a", Level{}, count("c", "k", 3))
	l.deliver(between("a", "c"))
	l.shows("c", "c/k=8\n")
	l.told["c"] = nil
	l.deliver(between("b", "c"))
	l.shows("c", "c/k=3\n")
	require.Equal(t, []string{"c"}, l.told["c"])
	l.deliver(all)
	l.told["c"] = nil
	l.pass(3 * time.Second)
	h, _ := l.cores["c"].Keys().Get("c")
	require.False(t, h.HasMarks() && len(l.told["c"]) > 0,
		"a mark that is not needed any more changes nothing")
}

func TestRestart_AcksOfAReplacedReplicaDoNotCount(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	id := l.update("a", Level{Kind: All}, add("s", "x"))
	l.deliver(func(m mail) bool {
		return m.from == "a" && m.to == "b" || m.from == "b" && m.to == "a"
	})
	l.take(all)
	require.EqualValues(t, 1, l.cores["a"].peers.of("b").acked)
	l.start("b") // comes back empty
	l.see("b", "ac")
	l.deliver(of(wire.ReplicatorBeat))
	require.Zero(t, l.cores["a"].peers.of("b").acked)
	require.NotContains(t, l.done, id)
	l.meet()
	require.Nil(t, l.done[id].Short)
	l.shows("b", "s/x=1\n")
}

func TestRefill_OneAnswerIsNotEnough(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	id := l.update("a", majority, add("s", "x"))
	l.deliver(func(m mail) bool {
		return m.from == "a" && m.to == "c" || m.from == "c" && m.to == "a"
	})
	require.Contains(t, l.done, id) // on a and c
	l.take(all)
	l.start("a")
	l.see("a", "bc")
	withoutC := func(m mail) bool { return m.from != "c" && m.to != "c" }
	for range 3 {
		l.deliver(withoutC)
		l.take(all)
		l.beat("a", "b")
	}
	require.False(t, l.cores["a"].Ready(), "b lacks the write that was acknowledged")
	l.meet()
	require.True(t, l.cores["a"].Ready())
	l.shows("a", "s/x=1\n")
}

func TestMessages_OfFormerIncarnationsAreDropped(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "old"))
	old := l.take(all)
	l.start("a")
	l.meet()
	before := l.cores["b"].Stats().Strangers
	l.hand(old...)
	l.shows("b", "")
	require.Equal(t, before+uint64(len(old)), l.cores["b"].Stats().Strangers)
}

func TestViews_AReturnerMergesBothWaysAfterAYear(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("c", Level{}, add("s", "common"))
	l.deliver(all)
	l.see("a", "b")
	l.see("b", "a")
	l.step("c", View{})
	l.update("c", Level{}, add("s", "lonely"))
	l.update("a", Level{}, add("s", "together"), remove("s", "common"))
	l.deliver(all)
	l.now = l.now.Add(365 * 24 * time.Hour)
	for _, n := range l.order {
		l.cutLogs(n)
	}
	l.meet()
	l.allShow("s/lonely=1\ns/together=1\n")
}

func TestDeadline_SaysWhoDidNotAnswer(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	id := l.update("a", majority, add("s", "x"))
	l.take(all)
	l.wake(2*time.Hour, "a")
	require.Equal(t, &Short{Needed: 2, Answered: 1, Counted: 3, Missing: []string{"b", "c"}},
		l.done[id].Short)
}
