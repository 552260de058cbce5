package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// without matches mail that neither comes from nor goes to a member.
func without(name string) func(mail) bool {
	return func(m mail) bool { return m.from != name && m.to != name }
}

// restarted begins as empty replicas, two of five, after a write that they and c have acknowledged; c is
// cut off.
func restarted(t *testing.T) *lab {
	l := newLab(t, "a", "b", "c", "d", "e")
	id := l.update("a", majority, add("s", "x"))
	l.deliver(func(m mail) bool { return m.from < "d" && m.to < "d" })
	require.Contains(t, l.done, id)
	l.take(all)
	for _, n := range []string{"a", "b"} {
		l.start(n)
		var others []Member
		for _, o := range l.order {
			if o != n {
				others = append(others, Member{ID: o})
			}
		}
		l.step(n, View{Others: others})
	}
	return l
}

func (l *lab) rounds(n int, match func(mail) bool) {
	for range n {
		l.now = l.now.Add(time.Second)
		for _, name := range l.order {
			l.step(name, Wake{})
		}
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

// An update that changes nothing is acknowledged when so many replicas cover what it observed [R50].
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
			l.cores["b"] = nil // only a has it now
			l.step("a", View{Others: []Member{{ID: "c"}}})
			id := l.update("a", majority, noop...)
			require.NotContains(t, l.done, id)
			l.rounds(2, func(m mail) bool { return false })
			require.NotContains(t, l.done, id, "on no majority of those that answer")
			l.rounds(4, without("b"))
			require.Contains(t, l.done, id)
			require.Nil(t, l.done[id].Short)
			l.shows("c", "s/x=1\n")
		})
	}
}

// Behind an own write, which followed all there is, an update that changes nothing asks nobody.
func TestNoop_BehindAnOwnWriteAsksNobody(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "x"))
	l.deliver(all)
	id := l.update("a", majority, remove("s", "none"))
	require.Contains(t, l.done, id)
	require.Empty(t, l.box)
}
