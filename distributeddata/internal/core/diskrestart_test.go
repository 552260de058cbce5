package core

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/distributeddata/store"
)

// Writes acknowledged at a majority are there once any majority is back.
func TestDisk_WholeClusterRestarts(t *testing.T) {
	for _, back := range [][]string{{"a", "b"}, {"b", "c"}, {"a", "c"}} {
		l := newDiskLab(t, "a", "b", "c")
		id := l.update("a", majority, add("s", "x"))
		l.deliver(between("a", "b"))
		l.deliver(between("b", "a"))
		require.Contains(t, l.done, id, "a and b have it")
		l.crash(l.order...)
		l.boot(back[0])
		l.order = back[:1]
		l.meet()
		require.False(t, l.cores[back[0]].Ready(), "one alone serves what it has")
		l.order = back
		l.boot(back[1])
		l.meets(4)
		for _, n := range back {
			require.True(t, l.cores[n].Ready(), "%s of %v", n, back)
			l.shows(n, "s/x=1\n")
		}
	}
}

// Disks that are stalled while a majority meets only delay it.
func TestDisk_WholeClusterRestartsOnSlowDisks(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.crash(l.order...)
	l.order = []string{"a", "b"}
	for _, n := range l.order {
		l.boot(n)
		l.disks[n].held = true
	}
	l.meets(4)
	for _, n := range l.order {
		require.Equal(t, DiskStalled, l.cores[n].Disk().Phase, n)
		require.False(t, l.cores[n].Ready(), "%s: its disk stands still", n)
	}
	for _, n := range l.order {
		l.sync(n)
	}
	l.meets(4)
	l.allReady()
}

// newFormerDirectory returns a lab in which c is left, and lacks an acknowledged write. The disk of
// b is that of an earlier process and lacks it too; b has yet to be started on it.
func newFormerDirectory(t *testing.T) *lab {
	l := newDiskLab(t, "a", "b", "c")
	rows := l.rowsOf("b")
	l.crash("b")
	l.boot("b")
	l.meet()
	id := l.update("a", majority, add("s", "x"))
	l.deliver(between("a", "b"))
	l.deliver(between("b", "a"))
	require.Contains(t, l.done, id, "a and b have it")
	l.crash("a")
	l.crash("b")
	l.disks["b"].rows = rows
	l.order = []string{"b", "c"}
	return l
}

// A member whose disk is that of an earlier process does not count as a holder of what a later one
// acknowledged.
func TestDisk_AFormerDirectoryDoesNotCount(t *testing.T) {
	l := newFormerDirectory(t)
	l.boot("b")
	l.meets(4)
	require.False(t, l.cores["b"].Ready(), "c lacks the write, and b has lost it")
}

// A disk that was set aside and has not been refilled does not count as one that has everything its
// member acknowledged, however often the member restarts.
func TestDisk_AHoleIsNotForgottenByARestart(t *testing.T) {
	for _, damage := range []string{"corrupt", "all"} {
		l := newDiskLab(t, "a", "b", "c")
		id := l.update("a", majority, add("s", "x"))
		l.deliver(between("a", "c"))
		l.deliver(between("c", "a"))
		require.Contains(t, l.done, id, "a and c have it")
		l.crash(l.order...)
		d := &l.disks["a"].simDisk
		if damageRow(d, damage); damage == "all" {
			d.rows = nil // a new disk
		}
		l.order = []string{"a", "b"}
		l.boot("b")
		for range 3 {
			l.boot("a")
			l.meets(4)
			require.False(t, l.cores["a"].Ready(), "b lacks the write")
			require.False(t, l.cores["b"].Ready(), "and a has lost it")
			l.crash("a")
		}
		l.order = []string{"a", "b", "c"}
		l.boot("a")
		l.boot("c")
		l.meets(4)
		for _, n := range l.order {
			require.True(t, l.cores[n].Ready(), "%s, %s", n, damage)
			l.shows(n, "s/x=1\n")
		}
	}
}

// A process whose disk has failed before it held the process's place has acknowledged nothing that
// the disk lacks: when it starts once more, the disk counts.
func TestDisk_ThatFailsAtTheStartCountsAfterTheNext(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "x"))
	l.deliver(all)
	l.crash(l.order...)
	l.order = []string{"a", "b"} // the machine of c is gone
	l.disks["b"].err = store.ErrFailed
	for _, n := range l.order {
		l.boot(n)
	}
	l.meets(4)
	require.Equal(t, DiskFailed, l.cores["b"].Disk().Phase)
	l.crash("b")
	l.disks["b"].err = nil
	l.boot("b")
	l.meets(6)
	l.allReady()
	l.allShow("s/x=1\n")
}

// A member whose disk has failed records no new member: its next process would not know it, and be
// a cluster without it.
func TestDisk_ThatHasFailedRecordsNoNewMember(t *testing.T) {
	l := newDiskLabOf(t, 1, "a")
	l.update("a", majority, add("s", "x"))
	l.deliver(all)
	l.disks["a"].err = store.ErrFailed
	l.disks["b"] = &labDisk{events: 1000}
	l.order = []string{"a", "b"}
	l.boot("b")
	l.meets(6)
	require.False(t, l.cores["b"].Ready(), "a has not recorded it")
	l.crash("a")
	l.disks["a"].err = nil
	l.boot("a")
	l.meets(6)
	require.True(t, l.cores["b"].Ready())
	l.shows("b", "s/x=1\n")
}

// All lose power while a member is leaving, and the machine of another one is gone. The disks of a
// majority are back, that of the leaving member among them, so the others serve, and remove it.
func TestDisk_OfAMemberThatWasLeavingCounts(t *testing.T) {
	l := newDiskLabOf(t, 2, "a", "b", "c", "d")
	l.update("a", majority, add("s", "x"))
	l.deliver(all)
	l.step("d", Drain{ID: 77, Leave: true, Deadline: l.now.Add(time.Hour)})
	for slices.ContainsFunc(l.order, func(n string) bool {
		return l.cores[n].members.Of("d").Rank != quorum.Going
	}) {
		l.oneByOne()
		require.NotEqual(t, quorum.Gone, l.cores["d"].members.Own().Rank)
	}
	l.crash(l.order...)
	l.order = []string{"a", "b", "d"} // the machine of c is gone
	for _, n := range l.order {
		l.boot(n)
	}
	l.meets(10)
	for _, n := range l.order {
		require.True(t, l.cores[n].Ready(), "%s: %+v", n, l.cores[n].QuorumStatus())
		require.EqualValues(t, 1, l.cores[n].members.Of("d").Version, "it was gone, and has entered again")
		l.shows(n, "s/x=1\n")
	}
}

// A directory from a backup remains one when its process is killed just after the others have told
// it what it lacks.
func TestDisk_AFormerDirectoryDoesNotCountAtTheSecondStart(t *testing.T) {
	l := newFormerDirectory(t)
	l.boot("b")
	l.see("b", "c")
	l.see("c", "b")
	last := l.cores["c"].members.Of("b").Inc
	for l.savedAs("b") != last { // until it has been told
		l.oneByOne()
	}
	require.Zero(t, l.cores["b"].members.inc.Number, "it has not taken its place yet")
	l.crash("b")
	l.boot("b")
	l.meets(4)
	require.False(t, l.cores["b"].Ready(), "c lacks the write, and b has lost it")
}

// A majority of the disks is back: the cluster serves at once, although a new member under another
// name has come first. Nobody counts the new member before somebody counts.
func TestDisk_NewMemberDoesNotCountBeforeTheDisksAreBack(t *testing.T) {
	for _, least := range []int{2, 3} {
		l := newDiskLabOf(t, least, "a", "b", "c")
		l.update("a", majority, add("s", "x"))
		l.deliver(all)
		l.crash(l.order...)
		l.disks["n"] = &labDisk{events: 1000} // the machine of c is gone
		l.order = []string{"a", "n"}
		l.boot("a")
		l.boot("n")
		l.meets(3)
		require.Equal(t, 3, l.cores["a"].members.Size(), "n must not be counted")
		l.order = []string{"a", "n", "b"}
		l.boot("b")
		l.meets(6)
		for _, n := range l.order {
			require.True(t, l.cores[n].Ready(), "%s, MinMembers %d: %+v", n, least,
				l.cores[n].QuorumStatus())
			l.shows(n, "s/x=1\n")
		}
	}
}

// savedAs returns as which incarnation of its member a disk was last written.
func (l *lab) savedAs(name string) quorum.Incarnation {
	m, err := decodeMemory(l.disks[name].rows[rowMembers])
	require.NoError(l.t, err)
	return m.Of(name).Inc
}

// oneByOne delivers one message, or lets some time pass if none is in flight.
func (l *lab) oneByOne() {
	if len(l.box) == 0 {
		l.wake(100*time.Millisecond, l.order...)
		return
	}
	m := l.box[0]
	l.box = l.box[1:]
	l.hand(m)
}
