package distributeddata_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// uncommitted makes updates of entries, the last of which are not committed while during runs: the
// first commit has just been, and no time passes.
func uncommitted(t *testing.T, c *cluster, keys ...string) {
	t.Helper()
	require.NoError(t, resultOf2(cart.Update(context.Background(), c.at(0), addTo("first"), local)))
	synctest.Wait()
	for _, k := range keys {
		key := distributeddata.NewKey(k, items{})
		require.NoError(t, resultOf2(key.Update(context.Background(), c.at(0), addTo("x"), local)))
	}
}

// Every way to read sees an update at Local as soon as it has returned, and nothing leaves the
// member before the commit.
func TestFront_ReadersSeeAnUpdateAtOnce(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		sent := dd.Status().Traffic().Messages
		uncommitted(t, c, "a", "b")
		require.Equal(t, sent+1, dd.Status().Traffic().Messages, "the first has been pushed")
		a, s := distributeddata.NewKey("a", items{}), dd.Snapshot()
		v, err := a.Get(ctx, dd)
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, slices.Collect(v.All()))
		v, err = a.Of(s)
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, slices.Collect(v.All()))
		require.Equal(t, []string{"a", "b", "cart"}, slices.Collect(dd.Keys()))
		require.Equal(t, 3, dd.Status().Keys)
		require.EqualValues(t, 3, dd.Status().Updates)
		listed := map[string]int{}
		for k, v := range distributeddata.NewPrefix("", items{}).Of(s) {
			listed[k.ID()] = v.Len()
		}
		require.Equal(t, map[string]int{"a": 1, "b": 1, "cart": 1}, listed)
		for ch := range a.Changes(ctx, dd) {
			require.Equal(t, 1, ch.Value.Len())
			break
		}
		require.Equal(t, sent+1, dd.Status().Traffic().Messages, "nothing has left this member")
		require.NoError(t, resultOf2(a.Update(ctx, dd, addTo("y"), distributeddata.Majority)))
		v, err = a.Get(ctx, c.at(1))
		require.NoError(t, err)
		require.Equal(t, 2, v.Len())
		require.Equal(t, 3, dd.Status().Keys)
	})
}

// A snapshot is of one instant also while updates are open: of a transaction that another member
// has made it shows all or nothing, and a later snapshot never shows less.
func TestFront_SnapshotsAreOfOneInstant(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		ctx := context.Background()
		a, b := distributeddata.NewKey("a", crdt.GCounter{}),
			distributeddata.NewKey("b", crdt.GCounter{})
		one := func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, 1); return nil }
		own := distributeddata.NewKey("own", crdt.GCounter{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 200 {
				require.NoError(t, distributeddata.Atomically(ctx, c.at(1),
					func(tx *distributeddata.Tx) error {
						_ = one(tx.Writer, a.In(tx))
						return one(tx.Writer, b.In(tx))
					}, local))
				time.Sleep(50 * time.Microsecond)
			}
		}()
		last := uint64(0)
		for i := range uint64(1000) {
			v, err := own.Update(ctx, c.at(0), one, local)
			require.NoError(t, err)
			require.Equal(t, i+1, v.Value())
			s := c.at(0).Snapshot()
			x, _ := a.Of(s)
			y, _ := b.Of(s)
			z, _ := own.Of(s)
			require.Equal(t, x.Value(), y.Value())
			require.Equal(t, i+1, z.Value())
			require.LessOrEqual(t, last, x.Value())
			last = x.Value()
			time.Sleep(20 * time.Microsecond)
		}
		<-done
	})
}

// An update takes place after the messages that its goroutine has sent before, and after its calls
// at other levels.
func TestFront_KeepsTheOrderOfAGoroutine(t *testing.T) {
	run(t, 1, distributeddata.Config{MinMembers: 1}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		key := distributeddata.NewKey("k", crdt.LWWRegister[int]{})
		set := func(n int) func(*crdt.Writer, *crdt.LWWRegister[int]) error {
			return func(w *crdt.Writer, v *crdt.LWWRegister[int]) error { v.Set(w, n); return nil }
		}
		for i := range 300 {
			switch n := 2 * i; i % 3 {
			case 0:
				dd.Request(c.Member(0).System.Root, key.UpdateMessage(set(n), local))
			case 1:
				require.NoError(t, resultOf2(key.Update(ctx, dd, set(n), distributeddata.Majority)))
			case 2:
				require.NoError(t, distributeddata.Atomically(ctx, dd,
					func(tx *distributeddata.Tx) error { return set(n)(tx.Writer, key.In(tx)) },
					local))
			}
			require.NoError(t, resultOf2(key.Update(ctx, dd, set(2*i+1), local)))
			v, err := key.Get(ctx, dd)
			require.NoError(t, err)
			n, _ := v.Value()
			require.Equal(t, 2*i+1, n)
		}
	})
}

// Whatever the function does, the next update takes place, and nothing of the failed one is seen.
func TestFront_AFailedFunctionChangesNothing(t *testing.T) {
	early(t, func(t *testing.T, _ *actor.ActorSystem, dd *distributeddata.Replicator, up func()) {
		up()
		ctx := context.Background()
		no := errors.New("no")
		for name, end := range map[string]func() error{
			"error": func() error { return no },
			"panic": func() error { panic("boom") },
			"exit":  func() error { runtime.Goexit(); return nil },
		} {
			err := distributeddata.ErrModify
			exited(func() {
				_, err = cart.Update(ctx, dd, func(w *crdt.Writer, v *items) error {
					v.Add(w, "lost")
					return end()
				}, local)
			})
			require.ErrorIs(t, err, distributeddata.ErrModify, name)
			require.ErrorIs(t, resultOf2(cart.Get(ctx, dd)), distributeddata.ErrNotFound, name)
		}
		v, err := cart.Update(ctx, dd, addTo("kept"), local)
		require.NoError(t, err)
		require.Equal(t, []string{"kept"}, slices.Collect(v.All()))
		require.Zero(t, dd.Status().Panics)
	})
}

// While a function blocks, reads at Local go on, also of what was just changed. Updates wait until
// their time is up.
func TestFront_ABlockedFunctionDoesNotBlockReads(t *testing.T) {
	run(t, 1, distributeddata.Config{MinMembers: 1}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		uncommitted(t, c, "a")
		release := make(chan struct{})
		go func() {
			_, _ = cart.Update(ctx, dd, func(w *crdt.Writer, v *items) error {
				<-release
				v.Add(w, "late")
				return nil
			}, local)
		}()
		synctest.Wait()
		begin := time.Now()
		for _, key := range []string{"a", "cart"} {
			v, err := distributeddata.NewKey(key, items{}).Get(ctx, dd)
			require.NoError(t, err)
			require.Equal(t, 1, v.Len())
		}
		require.Equal(t, []string{"a", "cart"}, slices.Collect(dd.Keys()))
		require.Zero(t, time.Since(begin))
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := resultOf2(cart.Update(short, dd, addTo("never"), local))
		require.ErrorIs(t, err, distributeddata.ErrUnknown)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, `busy in a function passed for "cart"`)
		require.Equal(t, time.Second, time.Since(begin))
		close(release)
		v, err := cart.Update(ctx, dd, addTo("last"), local)
		require.NoError(t, err)
		require.Equal(t, []string{"first", "last", "late"}, slices.Collect(v.All()))
	})
}

// The limits count what has not been committed.
func TestFront_LimitsCountOpenEntries(t *testing.T) {
	run(t, 1, distributeddata.Config{MinMembers: 1, MaxEntries: 3}, func(c *cluster) {
		uncommitted(t, c, "a", "b")
		ctx, dd := context.Background(), c.at(0)
		d := distributeddata.NewKey("d", items{})
		require.ErrorIs(t, resultOf2(d.Update(ctx, dd, addTo("x"),
			local)), distributeddata.ErrLimit)
		empty := func(w *crdt.Writer, v *items) error { v.Clear(w); return nil }
		require.NoError(t, resultOf2(distributeddata.NewKey("a", items{}).Update(ctx, dd, empty,
			local)))
		require.Equal(t, []string{"b", "cart"}, slices.Collect(dd.Keys()))
		require.NoError(t, resultOf2(d.Update(ctx, dd, addTo("x"), local)))
	})
}

// The updates of many goroutines are all made, each has a value of its own that nobody else gets,
// and other members get all of them.
func TestFront_ManyCallers(t *testing.T) {
	const callers, times = 64, 100
	for _, keys := range []int{1, 50} {
		run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
			ctx, dd := context.Background(), c.at(0)
			key := func(i int) distributeddata.Key[crdt.GCounter] {
				return distributeddata.NewKey(fmt.Sprintf("k%02d", i%keys), crdt.GCounter{})
			}
			var values sync.Map
			var readers, all sync.WaitGroup
			var over atomic.Bool
			for range 2 {
				readers.Go(func() {
					last := map[string]uint64{}
					for !over.Load() {
						now := map[string]uint64{}
						for k, v := range distributeddata.NewPrefix("k", crdt.GCounter{}).Of(
							dd.Snapshot()) {
							now[k.ID()] = v.Value()
						}
						for k, n := range last {
							require.LessOrEqual(t, n, now[k])
						}
						last = maps.Clone(now)
						time.Sleep(30 * time.Microsecond)
					}
				})
			}
			for g := range callers {
				all.Go(func() {
					for i := range times {
						k := key(g + i)
						v, err := k.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GCounter) error {
							v.Add(w, 1)
							return nil
						}, local)
						require.NoError(t, err)
						_, twice := values.LoadOrStore(fmt.Sprint(k, v.Value()), true)
						require.False(t, twice, "each value is returned once")
						now, err := k.Get(ctx, dd)
						require.NoError(t, err)
						require.GreaterOrEqual(t, now.Value(), v.Value())
						if i%16 == 0 {
							time.Sleep(100 * time.Microsecond)
						}
					}
				})
			}
			all.Wait()
			over.Store(true)
			readers.Wait()
			time.Sleep(5 * time.Second)
			for m := range 2 {
				sum := uint64(0)
				for i := range keys {
					v, err := key(i).Get(ctx, c.at(m))
					require.NoError(t, err)
					sum += v.Value()
				}
				require.EqualValues(t, callers*times, sum)
			}
		})
	}
}
