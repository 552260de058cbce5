package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/wire"
)

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
// its next incarnation or from its disk. The mark of a counter that was deleted meanwhile stays for
// it.
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
