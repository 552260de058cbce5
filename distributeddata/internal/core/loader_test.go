package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// However many batches a change takes, the disk holds all of it or none.
func TestDisk_AChangeOfManyBatchesIsThereWholeOrNotAtAll(t *testing.T) {
	l := newDiskLab(t, "a")
	l.batchRows = 6
	l.crash("a")
	l.boot("a")
	d := l.disks["a"]
	l.update("a", Level{}, add("s", "old"), add("s", "kept"), add("t", "old"))
	was := l.text("a")
	d.held = true
	ops := []op{remove("s", "old"), {kind: opDelete, key: "t"}}
	for i := range 40 {
		ops = append(ops, add("s", fmt.Sprint("new", i)))
	}
	id := l.update("a", Level{}, ops...)
	now, batches := l.text("a"), 0
	for ; len(d.under) > 0; batches++ {
		i := d.image(t.Fatalf)
		require.Empty(t, i.holes, "after %d batches", batches)
		got, err := shown(i.state.Keys)
		require.NoError(t, err)
		if _, saved := l.done[id]; saved {
			require.Equal(t, now, got)
		} else {
			require.Equal(t, was, got)
		}
		reloads(t, l, d, got)
		l.write("a")
	}
	require.Greater(t, batches, 10)
	l.crash("a")
	l.boot("a")
	l.shows("a", now)
}

// reloads asserts that a process which starts on a copy of the disk shows what the disk held, and
// leaves no extra row behind.
func reloads(t *testing.T, l *lab, d *labDisk, want string) {
	t.Helper()
	o := newDiskLab(t, "a")
	o.batchRows = l.batchRows
	o.crash("a")
	o.disks["a"].rows = map[string][]byte{}
	for key, value := range d.rows {
		o.disks["a"].rows[key] = slices.Clone(value)
	}
	o.next = 1000
	o.boot("a")
	o.shows("a", want)
	for key := range o.disks["a"].rows {
		require.False(t, strings.HasPrefix(key, rowRedo), "%q is of no use", key)
	}
}

func TestDisk_LargeAtomsAndLongPaths(t *testing.T) {
	l := newDiskLab(t, "a")
	long := strings.Repeat("p", 5000)
	d := l.disks["a"]
	l.update("a", Level{}, add("s", long), add("s", "x"), count("o", long, 3))
	want := l.text("a")
	l.crash("a")
	require.Empty(t, l.boot("a").holes)
	l.shows("a", want)
	l.update("a", Level{}, remove("s", long), drop("o", long))
	l.crash("a")
	require.Empty(t, l.boot("a").holes)
	l.shows("a", "s/x=1\n")
	for key := range d.rows {
		n, _ := parseRow(key)
		require.NotEqual(t, byte(rowPart), n.kind)
	}
}

func TestDisk_WhileItLoadsNothingIsDone(t *testing.T) {
	l := newDiskLab(t, "a", "b", "c")
	l.crash("a")
	l.start("a")
	l.see("a", "bc")
	for _, ev := range []Event{
		Update{ID: 70, Modify: func(*history.Txn) error {
			panic("not called")
		}}, Read{ID: 71}, Drain{ID: 72}, Forget{ID: 73}, Flush{ID: 74},
	} {
		l.step("a", ev)
	}
	for id := uint64(70); id < 75; id++ {
		require.ErrorIs(t, l.done[id].Err, ErrLoading)
	}
	require.True(t, l.cores["a"].NextWake().After(l.now))
	l.step("a", Loaded{Image: l.disks["a"].image(t.Fatalf)})
	require.NotEmpty(t, l.take(between("a", "b")), "it knows its view")
}

func TestLoader_RefusesWhatIsNotItsOwn(t *testing.T) {
	h := header{owner: "other", format: rowFormat}
	err := NewLoader("this\x00ddata\x00shop-1").Add(rowHeader, h.encode())
	require.ErrorIs(t, err, ErrForeign)
	require.ErrorContains(t, err, `: ["other"], here ["this" "ddata" "shop-1"]`)
	h.format++
	require.ErrorIs(t, NewLoader("other").Add(rowHeader, h.encode()), ErrNewer)
}

func FuzzLoader(f *testing.F) {
	f.Add("d\x00s\xffaxyz12345678", []byte{1, 2}, uint64(0))
	f.Add("v\x0012345678", []byte{1}, uint64(2))
	f.Add("d\x00s\xffb", []byte{20, 1}, uint64(0))
	f.Fuzz(func(t *testing.T, key string, value []byte, redo uint64) {
		l := NewLoader("x")
		require.NoError(t, l.Add(rowHeader, header{owner: "x", format: 1, redo: redo}.encode()))
		_ = l.Add(key, value)
		_ = l.Add(rowRedo+key, value)
		c := New(Config{Member: "m", NewReplica: func() causal.Replica {
			return 7
		}, MinMembers: 1, BeatInterval: time.Second,
			Disk: &DiskConfig{Owner: "x", Bytes: 1, Events: 1, Retry: 1}})
		c.Step(epoch, Loaded{Image: l.Image()})
	})
}
