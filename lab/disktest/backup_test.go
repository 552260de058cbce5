package disktest

import (
	"context"
	"fmt"
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

// backup exports the directory of a stopped member.
func backup(t *testing.T, dir string) string {
	t.Helper()
	s, err := inspect.Open(dir, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var out strings.Builder
	require.NoError(t, inspect.Export(t.Context(), s, &out))
	return out.String()
}

// restored imports an export into a new directory.
func restored(t *testing.T, export string, k kind) string {
	t.Helper()
	dir := newDir(t)
	_, err := inspect.Import(t.Context(), strings.NewReader(export), dir, k.name, nil)
	require.NoError(t, err)
	return dir
}

// rolling runs a cluster of members with a directory each. Member after member is stopped, exported
// and started, and all write on the day of each export, before it.
func rolling(t *testing.T, k kind, days ...string) (exports [replicas]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dirs := [replicas]string{newDir(t), newDir(t), newDir(t)}
	var stores [replicas]store.Store
	var members [replicas]*simnet.Member
	c, next := cluster{}, 0
	sim := simnet.NewCluster(simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: 5 * time.Millisecond}, Members: replicas,
		Setup: func(m *simnet.Member) {
			stores[next] = mustOpen(t, k, dirs[next])
			dd, err := distributeddata.New(m.System, distributeddata.Config{
				Name: "golden", Member: fmt.Sprint("golden-", next), MinMembers: replicas,
				Durable: []string{"*"}, Store: stores[next],
				HeartbeatInterval: 50 * time.Millisecond,
			})
			require.NoError(t, err)
			c.dd[next], members[next] = dd, m
			next++
		},
	})
	defer sim.Close()
	for _, dd := range c.dd {
		require.NoError(t, dd.Ready(ctx))
	}
	for i := range replicas {
		visit(ctx, t, c, days[i])
		require.NoError(t, c.dd[i].Close(ctx))
		require.NoError(t, stores[i].Close())
		sim.Leave(members[i])
		exports[i] = backup(t, dirs[i])
		next = i
		sim.Restart(members[i])
		require.NoError(t, c.dd[i].Ready(ctx))
	}
	for i, dd := range c.dd {
		require.NoError(t, dd.Close(ctx))
		require.NoError(t, stores[i].Close())
	}
	return exports
}

// visit makes one visit at each member, and one person. It returns the number of all visits.
func visit(ctx context.Context, t *testing.T, c cluster, day string) (total int64) {
	t.Helper()
	for i, dd := range c.dd {
		v, err := visits.Update(ctx, dd, func(w *crdt.Writer, v *crdt.PNCounter) error {
			v.Add(w, 1)
			return nil
		}, distributeddata.All)
		require.NoError(t, err)
		total = v.Value()
		_, err = people.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[string]) error {
			v.Add(w, fmt.Sprint(day, i))
			return nil
		}, distributeddata.All)
		require.NoError(t, err)
	}
	return total
}

// sees requires that each member holds these visits, and the people of these days alone.
func sees(ctx context.Context, t *testing.T, c cluster, total int64, days ...string) {
	t.Helper()
	var want []string
	for _, day := range days {
		for i := range replicas {
			want = append(want, fmt.Sprint(day, i))
		}
	}
	for _, dd := range c.dd {
		for _, level := range []distributeddata.Consistency{distributeddata.Majority,
			distributeddata.Local} {
			v, err := visits.Get(ctx, dd, level)
			require.NoError(t, err)
			require.Equal(t, total, v.Value())
			set, err := people.Get(ctx, dd, level)
			require.NoError(t, err)
			var got []string
			for p := range set.All() {
				got = append(got, p)
			}
			require.ElementsMatch(t, want, got)
		}
	}
}

// Exports of Monday, and writes of Tuesday. A member that is restored from Monday gets Tuesday back
// from the others. If all are, it is Monday again, in directories of the other kind of store. What
// they write afterwards is counted once.
func TestBackup_OneMemberOrAllAreRestored(t *testing.T) {
	all := kinds()
	for _, ks := range [][2]kind{{all[0], all[2]}, {all[2], all[0]}} {
		from, into := ks[0], ks[1]
		t.Run(from.name+" to "+into.name, func(t *testing.T) {
			dirs := [replicas]string{newDir(t), newDir(t), newDir(t)}
			runReplicas(t, from, dirs, func(ctx context.Context, c cluster) {
				require.EqualValues(t, 3, visit(ctx, t, c, "monday"))
			})
			var exports [replicas]string
			for i, dir := range dirs {
				exports[i] = backup(t, dir)
			}
			runReplicas(t, from, dirs, func(ctx context.Context, c cluster) {
				require.EqualValues(t, 6, visit(ctx, t, c, "tuesday"))
			})

			t.Run("all", func(t *testing.T) {
				monday := [replicas]string{restored(t, exports[0], into),
					restored(t, exports[1], into), restored(t, exports[2], into)}
				runReplicas(t, into, monday, func(ctx context.Context, c cluster) {
					sees(ctx, t, c, 3, "monday")
					require.EqualValues(t, 6, visit(ctx, t, c, "wednesday"))
					sees(ctx, t, c, 6, "monday", "wednesday")
				})
			})
			t.Run("one, the others as they were", func(t *testing.T) {
				dirs[2] = restored(t, exports[2], from)
				runReplicas(t, from, dirs, func(ctx context.Context, c cluster) {
					sees(ctx, t, c, 6, "monday", "tuesday")
					require.EqualValues(t, 9, visit(ctx, t, c, "wednesday"))
					sees(ctx, t, c, 9, "monday", "tuesday", "wednesday")
				})
			})
			t.Run("all, from exports that were made one after the other", func(t *testing.T) {
				var dirs [replicas]string
				for i, text := range rolling(t, from, "monday", "tuesday", "wednesday") {
					dirs[i] = restored(t, text, into)
				}
				runReplicas(t, into, dirs, func(ctx context.Context, c cluster) {
					sees(ctx, t, c, 9, "monday", "tuesday", "wednesday")
					require.EqualValues(t, 12, visit(ctx, t, c, "thursday"))
				})
			})
		})
	}
}

// All exports but one are lost. The member that is restored starts alone, forgets the others by
// force, and fills them: they start with empty directories.
func TestBackup_OneExportIsLeft(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k := kinds()[2]
	export := rolling(t, k, "monday", "tuesday", "wednesday")[1]
	dirs := [replicas]string{newDir(t), restored(t, export, k), newDir(t)}
	c, order, stores := cluster{}, []int{1, 0, 2}, [replicas]store.Store{}
	sim := simnet.NewCluster(simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: 5 * time.Millisecond}, Members: 1,
		Setup: func(m *simnet.Member) {
			i := order[0]
			order = order[1:]
			stores[i] = mustOpen(t, k, dirs[i])
			dd, err := distributeddata.New(m.System, distributeddata.Config{
				Name: "golden", Member: fmt.Sprint("golden-", i), MinMembers: replicas,
				Durable: []string{"*"}, Store: stores[i], HeartbeatInterval: 50 * time.Millisecond,
			})
			require.NoError(t, err)
			c.dd[i] = dd
		},
	})
	defer sim.Close()
	for d := c.dd[1].Status().Durable; d == nil || d.Disk != "working"; {
		require.NoError(t, ctx.Err())
		time.Sleep(10 * time.Millisecond)
		d = c.dd[1].Status().Durable
	}
	for _, name := range []string{"golden-0", "golden-2"} {
		require.NoError(t, c.dd[1].Forget(ctx, name, distributeddata.Force))
	}
	sim.Join()
	sim.Join()
	for _, dd := range c.dd {
		require.NoError(t, dd.Ready(ctx))
	}
	sees(ctx, t, c, 6, "monday", "tuesday")
	require.EqualValues(t, 9, visit(ctx, t, c, "thursday"))
	for i, dd := range c.dd {
		require.NoError(t, dd.Close(ctx))
		require.NoError(t, stores[i].Close())
	}
}
