package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

func TestDisk_NothingIsSaidThatItDoesNotHave(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.disks["a"].held = true
	local := l.update("a", Level{}, add("s", "x"))
	id := l.update("a", majority, add("s", "y"))
	require.Empty(t, l.take(of(wire.ReplicatorPush)), "not pushed")
	l.tick(time.Second)
	require.NotContains(t, l.done, local)
	require.Zero(t, l.cores["b"].Seen().Get(l.cores["a"].Replica()), "and its heartbeats do not tell it")
	l.shows("a", "s/x=1\ns/y=1\n")
	l.disks["b"].held, l.disks["c"].held = true, true
	l.sync("a")
	require.Contains(t, l.done, local)
	l.deliver(all)
	l.shows("b", "s/x=1\ns/y=1\n")
	require.NotContains(t, l.done, id, "no other disk has it")
	l.sync("c")
	l.deliver(all)
	l.succeeded(id)
	require.NoError(t, l.done[id].Store)
}

func TestDisk_ReadsDoNotWaitForIt(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.disks["a"].held = true
	l.update("a", Level{}, add("s", "x"))
	l.step("a", Read{ID: 70})
	require.Contains(t, l.done, uint64(70))
	l.step("a", Read{ID: 71, Level: majority, Deadline: l.now.Add(time.Hour)})
	l.deliver(all)
	require.Contains(t, l.done, uint64(71), "the others say what they have seen")
	l.step("a", Read{ID: 72, Level: Level{Kind: Linear}, Deadline: l.now.Add(time.Hour)})
	l.deliver(all)
	require.NotContains(t, l.done, uint64(72), "what it shows is on one disk less than it seems")
}

// a has what b wrote in memory only. If it said so, with itself as the second of a majority, the
// loss of b's machine and a power cut would take back what had been shown.
func TestDisk_WhatOthersWroteIsConfirmedWhenItHasIt(t *testing.T) {
	near := func(m mail) bool { return m.from != "c" && m.to != "c" }
	l := newDiskLab(t, "a", "b", "c")
	l.disks["a"].held = true
	l.update("b", Level{}, add("s", "x"))
	l.rounds(2, near)
	l.step("a", Read{ID: 72, Level: Level{Kind: Linear}, Deadline: l.now.Add(time.Hour)})
	noop := l.update("a", majority, remove("s", "nothing"))
	l.deliver(near)
	l.shows("a", "s/x=1\n")
	require.NotContains(t, l.done, uint64(72))
	require.NotContains(t, l.done, noop)
	l.sync("a")
	l.rounds(1, near)
	require.Contains(t, l.done, uint64(72))
	require.Contains(t, l.done, noop)
}

// The other members return what the disk has lost, under the id that made it.
func TestDisk_LostTailReturnsUnderOldId(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "x"))
	l.deliver(all)
	rows, was := l.rowsOf("a"), l.cores["a"].Replica()
	l.update("a", majority, add("s", "y"))
	l.deliver(all)
	l.crash("a")
	l.disks["a"].rows = rows
	require.Empty(t, l.boot("a").holes, "a former moment is whole")
	l.shows("a", "s/x=1\n")
	require.NotEqual(t, was, l.cores["a"].Replica())
	l.update("a", Level{}, add("s", "z"))
	l.meet()
	for _, n := range l.order {
		l.shows(n, "s/x=1\ns/y=1\ns/z=1\n")
		require.EqualValues(t, 2, l.cores[n].Seen().Get(was))
	}
}

// If the vector stood for rows that are missing, they would be removed everywhere.
func TestDisk_HoleInStoreRefillsInsteadOfDeleting(t *testing.T) {
	for _, damage := range []string{"corrupt", "missing", "vector", "header"} {
		t.Run(damage, func(t *testing.T) {
			l := newDiskLab(t, "a", "b", "c")
			l.update("a", majority, add("s", "x"), add("s", "removed"), count("c", "n", 5))
			l.deliver(all)
			// No other member receives it.
			l.update("a", Level{}, add("s", "only"), count("c", "n", 2))
			l.take(all)
			d := &l.disks["a"].simDisk
			l.crash("a")
			l.update("b", majority, remove("s", "removed"))
			l.deliver(all)
			damageRow(d, damage)
			require.NotEmpty(t, l.boot("a").holes)
			require.True(t, l.cores["a"].Disk().Refilling)
			l.shows("a", "")
			l.meet()
			l.allShow("c/n=5\ns/x=1\n")
			require.False(t, l.cores["a"].Disk().Refilling)
			require.Equal(t, []alarm{{"a", Unrecovered{[]string{"c", "s"}}}}, l.alarms)
			for range 2 { // they stay, and are named at each start
				l.alarms = nil
				l.crash("a")
				require.Empty(t, l.boot("a").holes)
				l.meet()
				l.allShow("c/n=5\ns/x=1\n")
				require.Equal(t, []alarm{{"a", Unrecovered{[]string{"c", "s"}}}}, l.alarms)
				old := 0
				for key := range d.rows {
					if n, ok := parseRow(key); ok && n.generation == 0 {
						old++
						require.Contains(t, []string{"c", "s"}, n.key, key)
					}
				}
				require.Equal(t, 2, old, "the counter's slot, and the element that only a had")
			}
		})
	}
}

// A power cut may come at any moment of the refill: nothing is counted twice, and what only the
// damaged disk had is named by the process that ends the refill.
func TestDisk_WhatIsSetAsideIsNeverRepeated(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "x"), count("c", "n", 5))
	l.deliver(all)
	l.update("a", Level{}, count("c", "n", 2)) // no other member receives it
	l.take(all)
	d := l.disks["a"]
	l.crash("a")
	damageRow(&d.simDisk, "corrupt")
	for crashes := 0; ; crashes++ { // one batch later each time
		require.Less(t, crashes, 100)
		l.alarms = nil
		l.boot("a")
		d.held = true
		for range crashes {
			l.seeAll("a", "b", "c")
			l.tick(time.Second)
			if len(d.under) > 0 {
				l.write("a")
			}
		}
		if c := l.cores["a"]; c.Ready() && !c.Disk().Refilling && len(d.under) == 0 {
			break
		}
		l.crash("a")
	}
	l.sync("a")
	l.meet()
	l.allShow("c/n=5\ns/x=1\n")
	require.Equal(t, []alarm{{"a", Unrecovered{[]string{"c"}}}}, l.alarms)
}

// A member that was cut off has the events that the damaged disk had. When it returns, they take
// effect once, everywhere, and what was removed meanwhile stays removed.
func TestDisk_AHoleRepeatsNothingThatOneCutOffHas(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c", "d", "e")
	l.update("a", majority, add("s", "x"), add("s", "y"), count("c", "n", 5))
	l.deliver(all)
	l.update("a", Level{}, count("c", "n", 2), add("s", "only"))
	l.deliver(between("a", "e")) // only e receives it
	l.take(all)
	l.update("e", Level{}, remove("s", "only"))
	l.take(all)
	l.order = []string{"a", "b", "c", "d"} // e is cut off
	l.crash("a")
	damageRow(&l.disks["a"].simDisk, "corrupt")
	l.boot("a")
	l.meets(2)
	l.allShow("c/n=5\ns/x=1\ns/y=1\n")
	l.order = append(l.order, "e")
	l.meets(2)
	l.allShow("c/n=7\ns/x=1\ns/y=1\n")
	l.alarms = nil
	l.crash("a")
	l.boot("a")
	l.meet()
	require.Empty(t, l.alarms, "the others have it")
}

// damageRow damages a disk: the row of the element x, the row of a replica, or the header.
func damageRow(d *simDisk, damage string) {
	d.rotten = map[string]bool{}
	for key := range d.rows {
		n, ok := parseRow(key)
		x := ok && !n.vector && n.key == "s" && !strings.Contains(n.rest, "only") &&
			!strings.Contains(n.rest, "removed")
		switch {
		case damage == "corrupt" && x, damage == "header" && key == rowHeader:
			d.rotten[key] = true
		case damage == "missing" && x, damage == "vector" && ok && n.vector:
			delete(d.rows, key)
			return
		}
	}
}

// What departed members have counted is counted once, whichever members restart.
func TestDisk_CountersOfTheDeparted(t *testing.T) {
	for _, behind := range []time.Duration{0, 200 * time.Millisecond} {
		l := newDiskLab(t, "a", "b", "c")
		for _, d := range l.disks {
			d.behind = behind
		}
		for i, n := range []string{"a", "b", "c", "a", "c"} {
			l.crash(n) // every member counts in several incarnations
			l.boot(n)
			l.meet()
			id := l.update(n, majority, count("c", "k", int64(i+1)))
			l.deliver(all)
			require.Contains(t, l.done, id)
			l.tick(time.Second)
		}
		l.crash(l.order...)
		l.order = []string{"c", "a"} // b never comes back
		l.boot("a")
		l.boot("c")
		l.meets(4)
		l.allReady()
		l.allShow("c/k=15\n")
	}
}

func TestDisk_WithoutRoomTheWriterIsTold(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	d := l.disks["a"]
	d.err = fmt.Errorf("write: %w", store.ErrFull)
	id := l.update("a", Level{}, add("s", "x"))
	require.ErrorIs(t, l.done[id].Store, store.ErrFull)
	require.Equal(t, DiskFull, l.cores["a"].Disk().Phase)
	require.False(t, l.cores["a"].Ready())
	l.deliver(all)
	l.shows("b", "s/x=1\n")
	id = l.update("a", majority, add("s", "y"))
	l.deliver(all)
	require.ErrorIs(t, l.done[id].Store, store.ErrFull, "although both others have it")
	id = l.update("b", Level{Kind: All}, add("s", "z"))
	l.deliver(all)
	require.NotContains(t, l.done, id, "what it has is in memory only")
	d.err = nil
	l.tick(time.Second)
	require.Contains(t, l.done, id, "there is room again")
	require.Equal(t, DiskWorking, l.cores["a"].Disk().Phase)
	l.crash("a")
	l.boot("a")
	l.shows("a", "s/x=1\ns/y=1\ns/z=1\n")
}

func TestDisk_OneThatHasFailedCountsNowhere(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.disks["c"].err = fmt.Errorf("sync: %w", store.ErrFailed)
	id := l.update("a", Level{Kind: All}, add("s", "x"))
	l.deliver(all)
	l.disks["c"].err = nil
	l.pass(3 * time.Second)
	l.shows("c", "s/x=1\n")
	require.NotContains(t, l.done, id)
	require.Equal(t, DiskFailed, l.cores["c"].Disk().Phase)
	require.Empty(t, l.disks["c"].under, "it is not written to any more")
	l.crash("c")
	l.boot("c")
	l.meet()
	require.Contains(t, l.done, id)
}

// [R48] The push that waited for the disk is sent, so the change does not need a heartbeat.
func TestDisk_PushesOfOneThatHasFailedAreSent(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.disks["a"].held = true
	id := l.update("a", Level{}, add("s", "x"))
	push := of(wire.ReplicatorPush)
	l.deliver(push)
	l.shows("b", "")
	l.disks["a"].err = fmt.Errorf("sync: %w", store.ErrFailed)
	l.sync("a")
	require.ErrorIs(t, l.done[id].Store, store.ErrFailed)
	l.deliver(push)
	for _, n := range []string{"b", "c"} {
		l.shows(n, "s/x=1\n")
	}
}

func TestDisk_ASlowOneStopsCounting(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.disks["a"].held = true
	id := l.update("a", Level{}, add("s", "x"))
	l.tick(6 * time.Second)
	require.Equal(t, DiskStalled, l.cores["a"].Disk().Phase)
	require.ErrorIs(t, l.done[id].Store, ErrDiskSlow)
	l.shows("b", "s/x=1\n")
	l.sync("a")
	require.Equal(t, DiskWorking, l.cores["a"].Disk().Phase)
}

func TestDisk_ACallEndsAtItsDeadline(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.disks["a"].held = true
	l.step("a", Update{ID: 70, Deadline: l.now.Add(time.Second), Modify: func(x *history.Txn) error {
		return perform(x, []op{add("s", "x")})
	}})
	require.False(t, l.cores["a"].NextWake().After(l.now.Add(time.Second)))
	l.tick(time.Second)
	require.ErrorIs(t, l.done[70].Store, ErrDiskSlow)
	l.sync("a")
	require.ErrorIs(t, l.done[70].Store, ErrDiskSlow, "it is answered once")
}

func TestDisk_WhatGathersIsBounded(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	d := l.disks["a"]
	d.held = true
	busy := 0
	var ids []uint64
	for i := range d.events + 10 {
		if id := l.update("a", Level{}, add("s", fmt.Sprint(i))); l.done[id].Err != nil {
			require.ErrorIs(t, l.done[id].Err, ErrDiskBusy)
			busy++
		} else {
			ids = append(ids, id)
		}
	}
	require.InDelta(t, 10, busy, 2)
	l.step("a", Read{ID: 7000})
	require.Contains(t, l.done, uint64(7000), "reads do not wait")
	l.update("b", Level{}, add("s", "theirs"))
	l.deliver(between("b", "a"))
	require.Zero(t, l.cores["a"].Seen().Get(l.cores["b"].Replica()), "dropped")
	l.sync("a")
	for _, id := range ids {
		require.NoError(t, l.done[id].Store)
		require.Contains(t, l.done, id)
	}
	require.LessOrEqual(t, len(d.writes), 12, "what gathers is one batch")
	l.rounds(2, all)
	require.EqualValues(t, 1, l.cores["a"].Seen().Get(l.cores["b"].Replica()), "asked for again")
}

// What was written of a first batch that was cut short is no damage: nothing was acknowledged yet.
func TestDisk_AFirstBatchCutShortIsNoDamage(t *testing.T) {
	l := NewLoader("sim")
	require.NoError(t, l.Add(rowRedo+rowMembers, []byte{0, 1}))
	i := l.Image()
	require.Empty(t, i.holes)
	require.Equal(t, []string{rowRedo + rowMembers}, i.trash)

	l = NewLoader("sim")
	require.NoError(t, l.Add(rowMembers, []byte{1}))
	require.NotEmpty(t, l.Image().holes, "rows without their header are")
}

// A replica that has no other member to hand its updates over to leaves when its disk has them,
// although nobody waits for them.
func TestDisk_TheLastOneLeavesWhenItsDiskHasEverything(t *testing.T) {
	for _, behind := range []time.Duration{0, time.Hour} {
		l := newDiskLabOf(t, 1, "a")
		l.crash("a")
		l.disks["a"].behind = behind
		l.boot("a")
		l.meet()
		d := l.disks["a"]
		d.held = true
		l.quiet("a", add("s", "x"))
		l.step("a", Drain{ID: 70, Leave: true, Deadline: l.now.Add(time.Hour)})
		l.tick(time.Second)
		require.NotContains(t, l.done, uint64(70), "the disk has nothing yet")
		l.sync("a")
		l.tick(time.Second)
		require.Contains(t, l.done, uint64(70))
		require.NoError(t, l.done[70].Store)
		l.crash("a")
		l.boot("a")
		l.shows("a", "s/x=1\n")
	}
}

// soleOnDisk returns a, the only member of a record. Its disk is slow once it is ready.
func soleOnDisk(t *testing.T, d *labDisk) *recorded {
	r := newRecorded(t, "")
	r.order, r.disks, r.patience = []string{"a"}, map[string]*labDisk{"a": d}, 0
	r.boot("a")
	r.see("a", "")
	r.talk(20)
	require.True(t, r.cores["a"].Ready())
	d.held = true
	return r
}

// [R46] A record without a member is written when the disk has what the member knew then.
func TestDisk_ARecordIsReplacedWhenTheDiskHasEverything(t *testing.T) {
	r := soleOnDisk(t, &labDisk{events: 1000})
	r.update("a", Level{}, add("s", "x"))
	r.step("a", Drain{ID: 70, Leave: true, Deadline: r.now.Add(time.Hour)})
	r.talk(4)
	require.Equal(t, "a in", r.says(), "the disk has nothing yet")
	r.sync("a")
	r.talk(20)
	require.Contains(t, r.done, uint64(70))
	require.Equal(t, "a gone", r.says())
}

// With write-behind the last member leaves when its disk has everything, too: where the record says
// that no other one counts, its removal waits for nothing else.
func TestDisk_LastOfARecordLeavesAfterItsWrites(t *testing.T) {
	d := &labDisk{events: 1000, behind: time.Hour}
	r := soleOnDisk(t, d)
	id := r.update("a", Level{}, add("s", "x"))
	require.Contains(t, r.done, id)
	r.step("a", Drain{ID: 70, Leave: true, Deadline: r.now.Add(time.Hour)})
	r.talk(4)
	require.NotContains(t, r.done, uint64(70), "the disk has nothing yet")
	r.sync("a")
	r.talk(20)
	require.Contains(t, r.done, uint64(70))
	require.NoError(t, r.done[70].Store)
	require.Empty(t, d.under)
	require.Equal(t, "a gone", r.says())
	r.crash("a")
	r.boot("a")
	r.shows("a", "s/x=1\n")
}

func TestDisk_WriteBehind(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	for _, n := range l.order {
		l.crash(n)
		l.disks[n].behind = 200 * time.Millisecond
		l.boot(n)
	}
	l.meet()
	d := l.disks["a"]
	before := len(d.writes)
	id := l.update("a", majority, add("s", "x"))
	l.deliver(all)
	require.Contains(t, l.done, id)
	require.Len(t, d.writes, before, "the disk comes later")
	require.False(t, l.cores["a"].NextWake().After(l.now.Add(200*time.Millisecond)))
	d.held = true
	l.step("a", Flush{ID: 70, Deadline: l.now.Add(time.Hour)})
	require.NotContains(t, l.done, uint64(70))
	l.sync("a")
	require.NoError(t, l.done[70].Store)
	require.Contains(t, l.done, uint64(70))
	l.crash("a")
	l.boot("a")
	l.shows("a", "s/x=1\n")
}

// A change of a large value writes only what it changed, and removed data leaves the disk.
func TestDisk_RowsFollowTheChange(t *testing.T) {
	l := newDiskLab(t, "a")
	d := l.disks["a"]
	var many []op
	for i := range 10_000 {
		many = append(many, add("s", fmt.Sprint("element ", i)))
	}
	l.update("a", Level{}, many...)
	l.update("a", Level{}, add("s", "one more"))
	require.LessOrEqual(t, d.writes[len(d.writes)-1], 1000)
	l.update("a", Level{}, op{kind: opDelete, key: "s"})
	require.Less(t, len(d.rows), 8, "header, members, replicas")
	var past []causal.Dot
	for i := range 1000 {
		past = append(past, causal.Dot{Replica: causal.Replica(i+1) * 1_000_003, N: 1 << 20})
	}
	before := d.bytes()
	joins(l.cores["a"], history.State{Seen: causal.MakeVector(past...)})
	l.update("a", Level{}, add("s", "x"))
	require.LessOrEqual(t, (d.bytes()-before)/1000, 32, "bytes of a past incarnation")
}

func (d *simDisk) bytes() (n int) {
	for key, value := range d.rows {
		n += len(key) + len(value)
	}
	return n
}

// An incarnation that ends after the next one has begun hands over its disk, with the batch in
// flight.
func TestDisk_IsInherited(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	d := l.disks["a"]
	d.held = true
	l.update("a", Level{}, add("s", "x"))
	old := l.cores["a"]
	l.start("a")
	l.see("a", "bc")
	require.Equal(t, DiskLoading, l.cores["a"].Disk().Phase)
	l.step("a", Inherit{Old: old})
	require.Equal(t, DiskWorking, l.cores["a"].Disk().Phase)
	l.shows("a", "s/x=1\n")
	require.NotZero(t, l.cores["a"].members.Counted(), "it remembers the members")
	require.Len(t, d.under, 2, "the batch under way is asked for once more")
	l.sync("a")
	l.pass(3 * time.Second)
	require.True(t, l.cores["a"].Ready())
	l.shows("b", "s/x=1\n")
	l.crash("a")
	i := l.boot("a")
	require.Empty(t, i.holes)
	require.NotZero(t, l.cores["a"].members.Counted(), "the disk remembers the members")
	l.shows("a", "s/x=1\n")
}
