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
