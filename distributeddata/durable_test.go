package distributeddata_test

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/testkit"
)

var durableCart = carts.Key("b")

// restart crashes all members at once and restarts them, in a different order.
func (c *cluster) restart() {
	c.t.Helper()
	all := c.Live()
	for _, m := range all {
		c.Crash(m)
		c.disks[m.Address].Crash()
	}
	slices.Reverse(all)
	for _, m := range all {
		c.Restart(m)
		time.Sleep(time.Second)
	}
	for _, m := range c.Live() {
		c.ready(m)
	}
}

// akka DurableData: acknowledged data is present after all members have lost power at once;
// volatile data is gone. With write-behind, what Flush has waited for is present.
// Seen in akka 21645, 22150.
func TestDurable_TheWholeClusterStops(t *testing.T) {
	for name, behind := range map[string]time.Duration{
		"at once": 0, "write-behind": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			cfg := twoDomains
			cfg.WriteBehind = behind
			run(t, 3, cfg, func(c *cluster) {
				ctx := context.Background()
				for round := range 3 {
					for i, n := range []string{"b", "d1", "d2", "a"} {
						_, err := carts.Key(n).Update(ctx, c.dd[c.Live()[i%3]],
							adding(string(rune('p'+round))), distributeddata.Majority)
						require.NoError(t, err)
					}
					if round == 1 {
						require.NoError(t, carts.Key("d2").Delete(ctx, c.dd[c.Live()[1]],
							distributeddata.Majority))
					}
					if behind > 0 {
						time.Sleep(50 * time.Millisecond) // all have it in memory
						for _, m := range c.Live() {
							require.NoError(t, c.dd[m].Flush(ctx))
						}
					}
					c.restart()
					dd := c.dd[c.Live()[round]]
					v, err := durableCart.Get(ctx, dd, distributeddata.Majority)
					require.NoError(t, err)
					require.Len(t, slices.Collect(v.All()), round+1)
					_, err = carts.Key("a").Get(ctx, dd, distributeddata.Majority)
					require.ErrorIs(t, err, distributeddata.ErrNotFound)
					_, err = carts.Key("d2").Get(ctx, dd, distributeddata.Majority)
					if round == 1 {
						require.ErrorIs(t, err, distributeddata.ErrNotFound,
							"what was deleted stays so")
					} else {
						require.NoError(t, err)
					}
				}
			})
		})
	}
}

// A full disk and a failing one report that to the writer; the change stays and spreads to the
// others. The full one recovers by itself when there is room.
// Seen in akka.net 5129.
func TestDurable_DisksThatFillUpAndFail(t *testing.T) {
	run(t, 3, twoDomains, func(c *cluster) {
		ctx := context.Background()
		disk := c.disks[c.Member(0).Address]
		disk.Set(testkit.DiskFaults{Full: true})
		_, err := durableCart.Update(ctx, c.at(0), adding("full"), local)
		require.ErrorIs(t, err, distributeddata.ErrStore)
		require.ErrorIs(t, err, store.ErrFull)
		require.Equal(t, "full", c.at(0).Status().Durable.Disk)
		require.ErrorContains(t, lifecycle.Of(c.Member(0).System).Check(), "the disk is full")
		_, err = carts.Key("a").Update(ctx, c.at(0), adding("volatile"), distributeddata.All)
		require.NoError(t, err)
		_, err = durableCart.Update(ctx, c.at(1), adding("others"), distributeddata.Majority)
		require.NoError(t, err, "two disks are a majority")
		disk.Set(testkit.DiskFaults{})
		time.Sleep(5 * time.Second)
		require.Equal(t, "working", c.at(0).Status().Durable.Disk)
		require.NoError(t, lifecycle.Of(c.Member(0).System).Check())
		_, err = durableCart.Update(ctx, c.at(0), adding("room"), distributeddata.All)
		require.NoError(t, err)

		disk.Set(testkit.DiskFaults{FailSync: true})
		_, err = durableCart.Update(ctx, c.at(0), adding("failed"), local)
		require.ErrorIs(t, err, distributeddata.ErrStore)
		require.ErrorIs(t, err, store.ErrFailed)
		require.ErrorIs(t, c.at(0).Flush(ctx), store.ErrFailed)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"failed", "full", "others", "room"},
			c.values(1, durableCart, distributeddata.Majority))
		require.Equal(t, "failed", c.at(0).Status().Durable.Disk)
		require.NotEmpty(t, c.at(0).Status().Durable.DiskError)
	})
}

func TestDurable_CloseOnStoreFailure(t *testing.T) {
	cfg := twoDomains
	cfg.CloseOnStoreFailure, cfg.MinMembers = true, 2
	run(t, 3, cfg, func(c *cluster) {
		c.disks[c.Member(0).Address].Set(testkit.DiskFaults{FailSync: true})
		_, err := durableCart.Update(context.Background(), c.at(0), adding("x"), local)
		require.Error(t, err)
		time.Sleep(10 * time.Second)
		_, err = durableCart.Get(context.Background(), c.at(0))
		require.ErrorIs(t, err, distributeddata.ErrClosed)
		require.Equal(t, []string{"x"}, c.values(1, durableCart, distributeddata.Majority))
	})
}

// unreadable is a store whose rows cannot be read.
type unreadable struct{ store.Store }

func (unreadable) Load(context.Context) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) { yield(store.Row{}, store.ErrFailed) }
}

// A store that failed while it was read at the start did not close the replicator.
func TestDurable_CloseOnStoreFailureAtTheStart(t *testing.T) {
	for _, closes := range []bool{false, true} {
		c := &cluster{t: t, unready: true, cfg: distributeddata.Config{
			Durable: []string{"orders/*"}, MinMembers: 1, CloseOnStoreFailure: closes},
			wrap: func(s store.Store) store.Store { return unreadable{s} }}
		c.run(1, func(c *cluster) {
			time.Sleep(time.Second)
			_, err := carts.Key("volatile").Get(context.Background(), c.at(0))
			if closes {
				require.ErrorIs(t, err, distributeddata.ErrClosed)
			} else {
				require.ErrorIs(t, err, distributeddata.ErrNotFound)
			}
			require.NoError(t, c.at(0).Close(context.Background()))
		})
	}
}

// slowStore waits before it yields its rows, and then calls end.
type slowStore struct {
	store.Store
	wait time.Duration
	end  func()
}

func (s *slowStore) Load(ctx context.Context) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		time.Sleep(s.wait)
		s.end()
		s.Store.Load(ctx)(yield)
	}
}

// loading runs a test on a member whose rows take a while to load.
func loading(t *testing.T, end func(), test func(c *cluster, dd *distributeddata.Replicator)) {
	c := &cluster{t: t, cfg: twoDomains, unready: true, wrap: func(s store.Store) store.Store {
		return &slowStore{s, 20 * time.Second, end}
	}}
	c.cfg.MinMembers = 1
	c.run(1, func(c *cluster) {
		time.Sleep(time.Second)
		test(c, c.at(0))
	})
}

// Until the rows are loaded, operations on durable keys wait; those on volatile keys do not.
func TestDurable_OperationsWaitForTheRows(t *testing.T) {
	loading(t, func() {}, func(c *cluster, dd *distributeddata.Replicator) {
		ctx := context.Background()
		require.Equal(t, "loading", dd.Status().Durable.Disk)
		begin := time.Now()
		_, err := durableCart.Get(ctx, dd)
		require.ErrorIs(t, err, distributeddata.ErrLoading)
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.ErrorIs(t, dd.Flush(ctx), distributeddata.ErrLoading)
		_, err = durableCart.Of(dd.Snapshot())
		require.ErrorIs(t, err, distributeddata.ErrLoading)
		err = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			durableCart.In(tx).Add(tx.Writer, "x")
			return nil
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrLoading)
		require.NoError(t, distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			cart.In(tx).Add(tx.Writer, "x")
			return nil
		}, local))
		begin = time.Now()
		_, err = cart.Update(ctx, dd, adding("y"), distributeddata.Majority)
		require.NoError(t, err)
		require.Equal(t, []string{"x", "y"}, c.values(0, cart))
		require.Less(t, time.Since(begin), 5*time.Second)

		long, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		c.Member(0).System.Root.Send(dd.PID(), durableCart.UpdateMessage(adding("sent"), local))
		v, err := durableCart.Update(long, dd, adding("waited"), distributeddata.Majority)
		require.NoError(t, err)
		require.Equal(t, []string{"sent", "waited"}, slices.Collect(v.All()))
		require.NoError(t, dd.Ready(long))
	})
}

// An unreadable store makes each operation on durable keys fail, and nothing is written to it.
func TestDurable_AStoreThatCannotBeReadIsAnError(t *testing.T) {
	for name, end := range map[string]func(){"panics": func() {
		panic("oh")
	}, "ends its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			loading(t, end, func(c *cluster, dd *distributeddata.Replicator) {
				time.Sleep(30 * time.Second)
				synctest.Wait()
				_, err := durableCart.Get(context.Background(), dd)
				require.ErrorIs(t, err, distributeddata.ErrStore)
				_, err = durableCart.Update(context.Background(), dd, adding("x"), local)
				require.ErrorIs(t, err, distributeddata.ErrStore)
				_, err = cart.Update(context.Background(), dd, adding("x"),
					distributeddata.Majority)
				require.NoError(t, err)
				require.Zero(t, c.disks[c.Member(0).Address].Stats().Commits)
			})
		})
	}
}

// The rows of another replicator are rejected, and left unchanged.
func TestDurable_RowsOfAnotherAreRefused(t *testing.T) {
	run(t, 1, twoDomains, func(c *cluster) {
		_, err := durableCart.Update(context.Background(), c.at(0), adding("x"), local)
		require.NoError(t, err)
		c.Crash(c.Member(0))
		c.cfg.Name, c.cfg.MinMembers = "another", 1
		m := c.Restart(c.Member(0))
		time.Sleep(time.Second)
		_, err = durableCart.Get(context.Background(), c.dd[m])
		require.ErrorIs(t, err, distributeddata.ErrStore)
		const why = `another cluster, Name or Member: ["" "ddata" ""], here ["" "another" ""]`
		require.ErrorContains(t, err, why)
		require.ErrorContains(t, lifecycle.Of(m.System).Check(), why)
	})
}

// With "*" no key is volatile, so after a stop of all, a majority with its disks is ready,
// whichever members are missing; one alone is not. Where keys can be volatile, those begin anew
// with MinMembers.
func TestDurable_AMajorityIsReadyWithoutTheRest(t *testing.T) {
	for _, list := range [][]string{{"*"}, twoDomains.Durable} {
		t.Run(list[0], func(t *testing.T) {
			run(t, 3, distributeddata.Config{Durable: list}, func(c *cluster) {
				ctx := context.Background()
				_, err := durableCart.Update(ctx, c.at(0), adding("x"), distributeddata.Majority)
				require.NoError(t, err)
				all := c.Live()
				for _, m := range all {
					c.Crash(m)
				}
				first := c.dd[c.Restart(all[2])]
				time.Sleep(10 * time.Second)
				s := first.Status()
				require.False(t, s.Ready)
				require.Contains(t, s.NotReady, "1 of 3 members seen")
				v, err := durableCart.Get(ctx, first)
				if err == nil { // its disk may not have belonged to the majority
					require.Equal(t, []string{"x"}, slices.Collect(v.All()))
				}
				second := c.dd[c.Restart(all[1])]
				time.Sleep(10 * time.Second)
				for _, dd := range []*distributeddata.Replicator{first, second} {
					v, err := durableCart.Get(ctx, dd, distributeddata.Majority)
					require.NoError(t, err)
					require.Equal(t, []string{"x"}, slices.Collect(v.All()))
					s := dd.Status()
					require.Equal(t, list[0] == "*", s.Ready, s.NotReady)
					require.True(t, s.Durable.Ready)
					require.Len(t, s.Missing, 1)
					if s.Ready {
						require.NoError(t, dd.Ready(ctx))
						require.Equal(t, 3, s.Counted)
						require.Equal(t, s.Durable.Replica, s.Replica)
					}
				}
			})
		})
	}
}

// Each level survives the crash of all members and the loss of as many disks as docs/durability.md
// promises. The write is on exactly as many disks as its level needs, and those are lost first.
func TestDurable_LevelsSurviveTheLossOfDisks(t *testing.T) {
	for name, level := range map[string]struct {
		level  distributeddata.Consistency
		beside int // number of others that have the write
		lost   int // number of disks, that of the writer first
	}{
		"Local":    {local, 0, 0},
		"Majority": {distributeddata.Majority, 1, 1},
		"Nodes(2)": {distributeddata.Nodes(2), 1, 1},
		"All":      {distributeddata.All, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, distributeddata.Config{Durable: []string{"*"}}, func(c *cluster) {
				all := c.Live()
				switch level.beside {
				case 0:
					c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
				case 1:
					c.Net.Partition(addresses(c, 0, 1), addresses(c, 2))
				}
				_, err := durableCart.Update(context.Background(), c.at(0), adding("x"),
					level.level)
				require.NoError(t, err)
				for i, m := range all {
					c.Crash(m)
					if i < level.lost {
						delete(c.disks, m.Address)
						delete(c.stores, m.Address)
					}
				}
				c.Net.Heal()
				for _, m := range all {
					c.Restart(m)
				}
				time.Sleep(20 * time.Second)
				for _, m := range c.Live() {
					v, err := durableCart.Get(context.Background(), c.dd[m])
					require.NoError(t, err, m)
					require.Equal(t, []string{"x"}, slices.Collect(v.All()), m)
				}
			})
		})
	}
}

// One of a majority that is back leaves before the rest has returned, and its writes are present.
func TestDurable_AMemberLeavesAMajorityOfDisks(t *testing.T) {
	run(t, 5, distributeddata.Config{Durable: []string{"*"}, OperationTimeout: 10 * time.Second},
		func(c *cluster) {
			ctx := context.Background()
			all := c.Live()
			for _, m := range all {
				c.Crash(m)
			}
			for _, m := range all[1:] {
				c.Restart(m)
			}
			time.Sleep(10 * time.Second)
			var missing []string
			for _, m := range c.Live() {
				c.ready(m)
				missing = c.dd[m].Status().Missing
			}
			require.Len(t, missing, 1)
			dd, begin := c.dd[c.Live()[0]], time.Now()
			_, err := durableCart.Update(ctx, dd, adding("y"), local)
			require.NoError(t, err)
			require.NoError(t, dd.Close(ctx))
			require.Less(t, time.Since(begin), 3*time.Second)
			v, err := durableCart.Get(ctx, c.dd[c.Live()[3]], distributeddata.Majority)
			require.NoError(t, err)
			require.Equal(t, []string{"y"}, slices.Collect(v.All()))
			require.Equal(t, missing, c.dd[c.Live()[3]].Status().Missing, "it has left")
		})
}
