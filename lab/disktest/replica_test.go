package disktest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/inspect"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/simnet"
)

// Entries of the golden replicas.
var (
	people = distributeddata.NewKey("people", crdt.ORSet[string]{})
	visits = distributeddata.NewKey("visits", crdt.PNCounter{})
	prices = distributeddata.NewKey("prices", crdt.LWWMap[string, int64]{})
	novel  = distributeddata.NewKey("novel", crdt.LWWRegister[string]{})
	gone   = distributeddata.NewKey("gone", crdt.GSet[int]{})
	buried = distributeddata.NewKey("buried", crdt.GSet[int]{})
)

// text is larger than a row may be.
var text = strings.Repeat("It was a dark and stormy night. ", 40_000)

// title is longer than a row's key may be.
var title = strings.Repeat("Sir ", 500)

const replicas = 3

// cluster holds the replicators of all members. end closes one, and then its store.
type cluster struct {
	dd  [replicas]*distributeddata.Replicator
	end func(i int)
}

// runReplicas runs a cluster of members with a directory each, in real time, until work returns.
func runReplicas(t *testing.T, k kind, dirs [replicas]string, work func(ctx context.Context,
	c cluster)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all [replicas]*distributeddata.Replicator
	var stores [replicas]store.Store
	for i := range stores {
		stores[i] = mustOpen(t, k, dirs[i])
	}
	i := 0
	c := simnet.NewCluster(simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: 5 * time.Millisecond}, Members: replicas,
		Setup: func(m *simnet.Member) {
			dd, err := distributeddata.New(m.System, distributeddata.Config{
				Name: "golden", Member: fmt.Sprint("golden-", i), MinMembers: replicas,
				Durable: []string{"*"}, Store: stores[i], HeartbeatInterval: 50 * time.Millisecond,
			})
			require.NoError(t, err)
			all[i] = dd
			i++
		},
	})
	defer c.Close()
	closed := map[int]bool{}
	end := func(i int) {
		if !closed[i] {
			closed[i] = true
			begin := time.Now()
			require.NoError(t, all[i].Close(ctx))
			require.Less(t, time.Since(begin), 20*time.Second)
			require.NoError(t, stores[i].Close())
		}
	}
	defer func() {
		for i := range all {
			end(i)
		}
	}()
	for _, dd := range all {
		require.NoError(t, dd.Ready(ctx))
	}
	work(ctx, cluster{all, end})
}

// writeGoldenReplica writes the content of the golden replicas; each process writes another part.
func writeGoldenReplica(ctx context.Context, t *testing.T,
	all [replicas]*distributeddata.Replicator, process int) {
	t.Helper()
	must := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	for i, dd := range all {
		must(people.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[string]) error {
			for n := range 20 {
				v.Add(w, fmt.Sprintf("person %d of member %d, process %d", n, i, process))
			}
			v.Remove(w, fmt.Sprintf("person %d of member %d, process %d", process, i, process))
			v.Add(w, title+fmt.Sprint(i, process))
			return nil
		}, distributeddata.All))
		must(visits.Update(ctx, dd, func(w *crdt.Writer, v *crdt.PNCounter) error {
			if process == 1 && i == 0 {
				v.Reset(w)
			}
			v.Add(w, int64(10*process+i+1))
			v.Add(w, -1)
			return nil
		}, distributeddata.All))
		must(prices.Update(ctx, dd, func(w *crdt.Writer, v *crdt.LWWMap[string, int64]) error {
			v.Set(w, "milk", int64(100*process+i))
			v.Set(w, fmt.Sprint("item ", i), int64(i))
			return nil
		}, distributeddata.All))
		must(gone.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GSet[int]) error {
			v.Add(w, process)
			return nil
		}, distributeddata.All))
		if process == 0 {
			must(buried.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GSet[int]) error {
				v.Add(w, i)
				return nil
			}, distributeddata.All))
		}
	}
	require.NoError(t, gone.Delete(ctx, all[0], distributeddata.All))
	if process == 0 {
		must(novel.Update(ctx, all[1], func(w *crdt.Writer, v *crdt.LWWRegister[string]) error {
			v.Set(w, text)
			return nil
		}, distributeddata.All))
		require.NoError(t, buried.Delete(ctx, all[2], distributeddata.All,
			distributeddata.Permanently))
	}
}

// requireGoldenReplica requires that a member holds what two processes of each of the three have
// written.
func requireGoldenReplica(ctx context.Context, t *testing.T, dd *distributeddata.Replicator,
	level distributeddata.Consistency) {
	t.Helper()
	set, err := people.Get(ctx, dd, level)
	require.NoError(t, err)
	var want []string
	for process := range 2 {
		for i := range replicas {
			for n := range 20 {
				if n == process {
					want = append(want, title+fmt.Sprint(i, process))
				} else {
					want = append(want, fmt.Sprintf("person %d of member %d, process %d", n, i,
						process))
				}
			}
		}
	}
	require.ElementsMatch(t, want, slices.Collect(set.All()))
	count, err := visits.Get(ctx, dd, level)
	require.NoError(t, err)
	require.EqualValues(t, 11+12+13-3, count.Value(), "the first process's were reset")
	table, err := prices.Get(ctx, dd, level)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"milk": 102, "item 0": 0, "item 1": 1, "item 2": 2},
		maps.Collect(table.All()))
	book, err := novel.Get(ctx, dd, level)
	require.NoError(t, err)
	read, _ := book.Value()
	require.True(t, read == text, "%d bytes instead of %d", len(read), len(text))
	_, err = gone.Get(ctx, dd, level)
	require.ErrorIs(t, err, distributeddata.ErrNotFound)
	_, err = buried.Get(ctx, dd, level)
	require.ErrorIs(t, err, distributeddata.ErrDeleted)
}

// The directories of a whole cluster of this version are kept forever, like those of rows. There
// are three members per store. The first was stopped, and the others were copied while they ran.
// Every later version restarts them, reads what was written, and continues.
func TestGolden_ReplicasOfEveryFormatStartAgain(t *testing.T) {
	for _, k := range kinds() {
		if k.name == "badger-encrypted" {
			continue // row directories are golden already, and encrypted data cannot be packed
		}
		t.Run(k.name, func(t *testing.T) {
			name := func(i int) string {
				return filepath.Join("testdata", fmt.Sprintf("replica-1-%s-member-%d.tar.gz",
					k.name, i))
			}
			if _, err := os.Stat(name(0)); errors.Is(err, fs.ErrNotExist) && *writeGolden {
				makeGoldenReplicas(t, k, name)
			}
			var dirs [replicas]string
			for i := range dirs {
				dirs[i] = newDir(t)
				unpack(t, name(i), dirs[i])
				verifyGoldenReplica(t, k, dirs[i])
			}
			runReplicas(t, k, dirs, func(ctx context.Context, c cluster) {
				for _, dd := range c.dd {
					s := dd.Status()
					require.Zero(t, s.Durable.Holes)
					require.Equal(t, "working", s.Durable.Disk)
					requireGoldenReplica(ctx, t, dd, distributeddata.Local)
					requireGoldenReplica(ctx, t, dd, distributeddata.Majority)
				}
				_, err := people.Update(ctx, c.dd[0],
					func(w *crdt.Writer, v *crdt.ORSet[string]) error {
						v.Add(w, "new")
						return nil
					}, distributeddata.All)
				require.NoError(t, err)
			})
			runReplicas(t, k, dirs, func(ctx context.Context, c cluster) {
				set, err := people.Get(ctx, c.dd[2], distributeddata.Majority)
				require.NoError(t, err)
				require.True(t, set.Contains("new"))
			})
		})
	}
}

// verifyGoldenReplica requires that inspect recognizes every row of a directory.
func verifyGoldenReplica(t *testing.T, k kind, dir string) {
	t.Helper()
	s := mustOpen(t, k, dir)
	r, err := inspect.Verify(t.Context(), s)
	require.NoError(t, err)
	require.True(t, r.Sound())
	require.Zero(t, r.Unknown)
	var found []string
	for _, e := range r.Entries {
		found = append(found, e.Key)
	}
	require.Subset(t, found, []string{"buried", "novel", "people", "prices", "visits"})
	require.NoError(t, s.Close())
}

// makeGoldenReplicas makes two processes of each member write, and packs their directories.
func makeGoldenReplicas(t *testing.T, k kind, name func(i int) string) {
	t.Helper()
	dirs := [replicas]string{newDir(t), newDir(t), newDir(t)}
	runReplicas(t, k, dirs, func(ctx context.Context, c cluster) {
		writeGoldenReplica(ctx, t, c.dd, 0)
	})
	runReplicas(t, k, dirs, func(ctx context.Context, c cluster) {
		writeGoldenReplica(ctx, t, c.dd, 1)
		for _, i := range []int{1, 2} {
			pack(t, copyDir(t, dirs[i]), name(i))
		}
		c.end(0)
		pack(t, dirs[0], name(0))
	})
}
