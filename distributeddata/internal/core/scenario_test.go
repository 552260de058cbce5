package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
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
