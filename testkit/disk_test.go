package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/testkit"
)

func batch(pairs ...string) *store.Batch {
	b := &store.Batch{}
	for i := 0; i < len(pairs); i += 2 {
		b.Put(pairs[i], []byte(pairs[i+1]))
	}
	return b
}

func rowsOf(t *testing.T, s store.Store) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for r, err := range s.Load(t.Context()) {
		require.NoError(t, err)
		rows[r.Key] = string(r.Value)
	}
	return rows
}

func openDisk(t *testing.T, d *testkit.Disk) store.Store {
	t.Helper()
	s, err := d.Open("rows")
	require.NoError(t, err)
	return s
}

func TestDisk_KeepsOverACrashWhatWasSynced(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		m := c.Member(1)
		s := openDisk(t, m.Disk())
		require.NoError(t, s.Commit(t.Context(), batch("a", "1")))
		m.Disk().Set(testkit.DiskFaults{Delay: time.Second})
		late := make(chan error, 1)
		go func() { late <- s.Commit(context.Background(), batch("b", "2")) }()
		c.Advance(500 * time.Millisecond)
		next := m.Restart()
		require.ErrorIs(t, <-late, store.ErrClosed)
		require.ErrorIs(t, s.Commit(t.Context(), batch("c", "3")), store.ErrClosed,
			"of the former process")
		require.Same(t, m.Disk(), next.Disk())
		require.NotSame(t, c.Member(0).Disk(), next.Disk())
		rows := rowsOf(t, openDisk(t, next.Disk()))
		require.Equal(t, "1", rows["a"])
		require.NotContains(t, rows, "c")
		require.Empty(t, rowsOf(t, openDisk(t, c.Member(0).Disk())))
	})
}

// Unsynced data is kept or lost at random; a half-written batch is detected and dropped.
func TestDisk_LosesOrKeepsWhatWasOnlyWritten(t *testing.T) {
	kept, lost, torn := 0, 0, 0
	for seed := range uint64(40) {
		testkit.Bubble(t, func(t *testing.T) {
			d := testkit.NewDisk(seed)
			s := openDisk(t, d)
			d.Set(testkit.DiskFaults{Delay: time.Minute})
			var work sync.WaitGroup
			work.Go(func() { _ = s.Commit(context.Background(), batch("a", "1", "b", "1")) })
			time.Sleep(time.Second)
			d.Crash()
			work.Wait()
			rows := rowsOf(t, openDisk(t, d))
			require.Equal(t, rows["a"], rows["b"])
			kept += len(rows) / 2
			lost += d.Stats().Lost
			torn += d.Stats().Torn
		})
	}
	require.Equal(t, 40, kept+lost)
	require.NotZero(t, kept)
	require.NotZero(t, torn)
	require.Less(t, torn, lost)
}

func TestDisk_FaultsOfOneCommit(t *testing.T) {
	testkit.Run(t, 1, func(t *testing.T, c *testkit.Cluster) {
		d := c.Member(0).Disk()
		s := openDisk(t, d)
		full := d.Next(func(k testkit.DiskCommit) bool {
			return k.Store == "rows" && k.Batch.Len() == 2
		}, testkit.DiskFaults{Full: true})
		require.NoError(t, s.Commit(t.Context(), batch("a", "1")))
		require.False(t, full())
		require.ErrorIs(t, s.Commit(t.Context(), batch("a", "2", "b", "2")), store.ErrFull)
		require.True(t, full())
		require.NoError(t, s.Commit(t.Context(), batch("a", "3", "b", "3")))
		d.Set(testkit.DiskFaults{Full: true})
		c.Heal()
		require.NoError(t, s.Commit(t.Context(), batch("a", "4")))

		d.Next(nil, testkit.DiskFaults{FailSync: true})
		require.ErrorIs(t, s.Commit(t.Context(), batch("c", "5")), store.ErrFailed)
		require.ErrorIs(t, s.Commit(t.Context(), batch("c", "6")), store.ErrFailed)
		require.NoError(t, s.Close())
		rows := rowsOf(t, openDisk(t, d))
		require.Equal(t, "4", rows["a"])
		require.Equal(t, 3, d.Stats().Commits)
	})
}

func TestDisk_FlippedRowIsCorrupt(t *testing.T) {
	d := testkit.NewDisk(1)
	s := openDisk(t, d)
	require.NoError(t, s.Commit(t.Context(), batch("a", "1", "b", "2")))
	require.False(t, d.Flip("rows", "none"))
	require.False(t, d.Flip("none", "a"))
	require.True(t, d.Flip("rows", "a"))
	var got []string
	for r, err := range s.Load(t.Context()) {
		got = append(got, fmt.Sprint(r.Key, errors.Is(err, store.ErrCorrupt)))
	}
	require.Equal(t, []string{"atrue", "bfalse"}, got)
	require.Equal(t, 1, d.Stats().Corrupt)
}

func TestDisk_CommitsThatMeetShareASync(t *testing.T) {
	testkit.Run(t, 1, func(t *testing.T, c *testkit.Cluster) {
		d := c.Member(0).Disk()
		d.Set(testkit.DiskFaults{Delay: 10 * time.Millisecond})
		s := openDisk(t, d)
		start := time.Now()
		var work sync.WaitGroup
		for i := range 50 {
			work.Go(func() {
				if err := s.Commit(context.Background(), batch(fmt.Sprint(i), "x")); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		require.LessOrEqual(t, time.Since(start), 20*time.Millisecond) // of virtual time
		require.LessOrEqual(t, d.Stats().Syncs, 2)
		require.Equal(t, 50, d.Stats().Commits)
		require.Len(t, rowsOf(t, s), 50)
	})
}

func TestDisk_OfAFrozenMemberAnswersWhenItThaws(t *testing.T) {
	testkit.Run(t, 1, func(t *testing.T, c *testkit.Cluster) {
		m := c.Member(0)
		s := openDisk(t, m.Disk())
		m.Suspend()
		done := make(chan error, 1)
		go func() { done <- s.Commit(context.Background(), batch("a", "1")) }()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.Commit(ctx, batch("b", "1")), context.DeadlineExceeded)
		c.Advance(time.Hour)
		require.Empty(t, done)
		m.Thaw()
		require.NoError(t, <-done)
		require.Equal(t, map[string]string{"a": "1"}, rowsOf(t, s))
	})
}

// When a member leaves it closes its stores, or they are closed when its process ends.
func TestDisk_IsUnlockedWhenItsMemberLeaves(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		d := c.Member(1).Disk()
		s := openDisk(t, d)
		require.NoError(t, s.Commit(t.Context(), batch("a", "1")))
		_, err := d.Open("rows")
		require.ErrorIs(t, err, store.ErrLocked)
		require.NoError(t, c.Member(1).Leave(t.Context()))
		require.ErrorIs(t, s.Commit(t.Context(), batch("a", "2")), store.ErrClosed)
		require.Equal(t, map[string]string{"a": "1"}, rowsOf(t, openDisk(t, d)))
	})
}

// A sync that lasts longer than the test does not keep the test from ending.
func TestDisk_ASyncThatLastsLongerThanTheTest(t *testing.T) {
	var ofMember, alone error
	testkit.Run(t, 1, func(t *testing.T, c *testkit.Cluster) {
		pend := func(d *testkit.Disk, late *error) {
			s := openDisk(t, d)
			d.Next(nil, testkit.DiskFaults{Delay: 24 * time.Hour})
			go func() { *late = s.Commit(context.Background(), batch("a", "1")) }()
		}
		pend(c.Member(0).Disk(), &ofMember)
		pend(testkit.NewDisk(1), &alone)
		c.Advance(time.Second)
	})
	require.ErrorIs(t, ofMember, store.ErrClosed)
	require.NoError(t, alone)
}
