package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
)

// without matches mail that neither comes from nor goes to a member.
func without(name string) func(mail) bool {
	return func(m mail) bool { return m.from != name && m.to != name }
}

// restarted restarts two of five as empty replicas, after a write that they and c have
// acknowledged; c is cut off.
func restarted(t *testing.T) *lab {
	l := newLab(t, "a", "b", "c", "d", "e")
	id := l.update("a", majority, add("s", "x"))
	l.deliver(func(m mail) bool { return m.from < "d" && m.to < "d" })
	require.Contains(t, l.done, id)
	l.take(all)
	for _, n := range []string{"a", "b"} {
		l.start(n)
		l.seeAll(n)
	}
	return l
}

func (l *lab) rounds(n int, match func(mail) bool) {
	for range n {
		l.beat(l.order...)
		l.deliver(match)
		l.take(all)
	}
}

func TestRefill_AnswersOfTheUnreadyDoNotCount(t *testing.T) {
	l := restarted(t)
	l.rounds(5, without("c"))
	require.False(t, l.cores["a"].Ready(), "d and e lack the write, b is as empty as a")
	require.False(t, l.cores["b"].Ready())
	l.meet()
	l.shows("a", "s/x=1\n")
}

func TestRead_TheUnreadyDoNotCount(t *testing.T) {
	l := restarted(t)
	l.rounds(1, without("c"))
	l.step("d", Read{ID: 99, Level: majority, Deadline: l.now.Add(time.Hour)})
	l.rounds(3, without("c"))
	require.NotContains(t, l.done, uint64(99), "a and b have lost the write, d and e never had it")
}

func TestWrite_TheUnreadyDoNotCount(t *testing.T) {
	l := restarted(t)
	l.rounds(1, without("c"))
	id := l.update("d", majority, add("s", "y"))
	l.rounds(3, without("c"))
	require.NotContains(t, l.done, id, "of those that have it only d and e are ready")
}

// An update that changes nothing is acknowledged when as many replicas as required cover what it
// observed [R34].
func TestNoop_WaitsForWhatItObserved(t *testing.T) {
	for name, noop := range map[string][]op{
		"found":   {remove("s", "gone"), remove("s", "gone")},
		"deleted": {{kind: opDelete, key: "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "a", "b", "c")
			l.update("b", Level{}, add("s", "x"))
			l.deliver(between("b", "a"))
			l.take(all)
			l.cores["b"] = nil // now only a has it
			l.see("a", "c")
			id := l.update("a", majority, noop...)
			require.NotContains(t, l.done, id)
			l.rounds(2, func(m mail) bool { return false })
			require.NotContains(t, l.done, id, "on no majority of those that answer")
			l.rounds(4, without("b"))
			l.succeeded(id)
			l.shows("c", "s/x=1\n")
		})
	}
}

// After an own write that followed everything seen, an update that changes nothing asks no other
// member.
func TestNoop_BehindAnOwnWriteAsksNobody(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "x"))
	l.deliver(all)
	id := l.update("a", majority, remove("s", "none"))
	require.Contains(t, l.done, id)
	require.Empty(t, l.box)
}

// However many calls wait, they share a few operations, which ask no more than usual [R35].
func TestCalls_ManyAtOnceAskLittle(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	a, n := l.cores["a"], uint64(3000)
	l.update("b", Level{}, add("s", "x"))
	l.deliver(between("b", "a"))
	l.take(all)
	l.cores["b"] = nil
	l.see("a", "c")
	for i := range n { // reads of two levels, and updates that change nothing
		l.step("a", Read{ID: 3*i + 1000, Level: majority, Deadline: l.now.Add(time.Hour)})
		l.step("a", Read{ID: 3*i + 1001, Level: Level{Kind: Linear},
			Deadline: l.now.Add(time.Hour)})
		l.step("a", Update{ID: 3*i + 1002, Level: majority, Deadline: l.now.Add(time.Hour),
			Modify: func(*history.Txn) error {
				return nil
			}})
	}
	require.LessOrEqual(t, a.waits.Len(), 3*(waiting.Rounds+1))
	require.Less(t, len(l.box), 2*len(l.order)*3*(waiting.Rounds+1))
	for i := range n {
		l.step("a", Update{ID: i + 100_000, Level: majority, Deadline: l.now.Add(time.Hour),
			Modify: func(t *history.Txn) error {
				return perform(t, []op{count("c", "k", 1)})
			}})
	}
	require.LessOrEqual(t, a.waits.Len(), 3*(waiting.Rounds+1)+1)
	l.rounds(6, without("b"))
	require.Zero(t, a.waits.Len())
	for i := range n {
		for _, id := range []uint64{3*i + 1000, 3*i + 1001, 3*i + 1002, i + 100_000} {
			if d, ok := l.done[id]; !ok || d.Short != nil {
				t.Fatalf("call %d: %+v", id, d)
			}
		}
	}
}

// Calls that wait together each complete at their own deadline.
func TestCalls_EachEndsAtItsDeadline(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	for i := range 40 {
		at := l.now.Add(time.Duration(1+i%7) * time.Second)
		l.step("a", Read{ID: uint64(1000 + i), Level: majority, Deadline: at})
		l.step("a", Update{ID: uint64(2000 + i), Level: majority, Deadline: at,
			Modify: func(t *history.Txn) error {
				return perform(t, []op{count("c", "k", 1)})
			}})
	}
	l.take(all)
	for s := 1; s <= 7; s++ {
		l.beat("a")
		l.take(all)
		for i := range 40 {
			for _, id := range []uint64{uint64(1000 + i), uint64(2000 + i)} {
				require.Equal(t, 1+i%7 <= s, l.done[id].Short != nil, "call %d after %d s", id, s)
			}
		}
	}
	require.Zero(t, l.cores["a"].waits.Len())
	require.Equal(t, &Short{Needed: 2, Answered: 1, Counted: 3, Missing: []string{"b", "c"}},
		l.done[2000].Short)
}

// A read asks after it has begun: the answer to an earlier question may contain less than the read
// must show.
func TestRead_JoinsNoQuestionAskedBefore(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.step("a", Read{ID: 91, Level: majority, Deadline: l.now.Add(time.Hour)})
	l.deliver(between("a", "c"))
	early := l.take(between("c", "a"))
	l.take(all)
	id := l.update("b", majority, add("s", "x"))
	l.deliver(without("a"))
	require.Contains(t, l.done, id)
	l.step("a", Read{ID: 92, Level: majority, Deadline: l.now.Add(time.Hour)})
	l.hand(early...)
	require.Contains(t, l.done, uint64(91))
	require.NotContains(t, l.done, uint64(92), "a does not know of the write yet")
	l.rounds(4, all)
	require.Contains(t, l.done, uint64(92))
	l.shows("a", "s/x=1\n")
}
