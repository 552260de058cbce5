package distributeddata_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// heard collects what a loop over changes yields, until stop.
type heard struct {
	lines []string
	stop  func()
}

func hear(dd *distributeddata.Replicator, changes func(context.Context,
	*distributeddata.Replicator) func(func(*distributeddata.Changed[items]) bool)) *heard {
	ctx, cancel := context.WithCancel(context.Background())
	h, ended := &heard{}, make(chan struct{})
	go func() {
		defer close(ended)
		for c := range changes(ctx, dd) {
			h.lines = append(h.lines, line(c))
		}
	}()
	h.stop = func() { cancel(); <-ended }
	return h
}

// take returns the lines since its last call.
func (h *heard) take() []string {
	synctest.Wait()
	defer func() { h.lines = nil }()
	return h.lines
}

func ofCart(ctx context.Context,
	dd *distributeddata.Replicator) func(func(*distributeddata.Changed[items]) bool) {
	return cart.Changes(ctx, dd)
}

func ofCarts(ctx context.Context,
	dd *distributeddata.Replicator) func(func(*distributeddata.Changed[items]) bool) {
	return carts.Changes(ctx, dd)
}

// A loop over changes begins before the member does, batches them, and yields at once after
// FlushChanges.
func TestChanges_OfAKeyAndOfAPrefix(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		key, prefix := hear(dd, ofCart), hear(dd, ofCarts)
		defer key.stop()
		defer prefix.stop()
		up()
		put(t, dd, cart, "a")
		put(t, dd, cart, "b")
		put(t, dd, carts.Key("1"), "x")
		time.Sleep(time.Second)
		require.Equal(t, []string{"cart [][a b]"}, key.take())
		require.Equal(t, []string{"cart-1 [][x]"}, prefix.take())
		put(t, dd, cart, "c")
		require.NoError(t, distributeddata.Atomically(context.Background(), dd,
			func(tx *distributeddata.Tx) error {
				carts.Key("2").In(tx).Add(tx.Writer, "y")
				carts.Key("1").In(tx).Remove(tx.Writer, "x")
				return nil
			}, local))
		synctest.Wait()
		require.Empty(t, key.take())
		begin := time.Now()
		dd.FlushChanges()
		synctest.Wait()
		require.Zero(t, time.Since(begin))
		require.Equal(t, []string{"cart [a b][a b c]"}, key.take())
		require.Equal(t, []string{"cart-1 [x][] deleted", "cart-2 [][y]"}, prefix.take())
		require.NoError(t, cart.Delete(context.Background(), dd, local,
			distributeddata.Permanently))
		time.Sleep(time.Second)
		require.Equal(t, []string{`cart [a b c][] deleted key "cart": ` +
			distributeddata.ErrDeleted.Error()}, key.take())
		time.Sleep(time.Second)
		require.Empty(t, key.take())
	})
}

// A loop with a slow body gets only the newest value, and break ends it.
func TestChanges_ASlowLoopGetsTheNewest(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		go func() {
			for range 1000 {
				_ = click(context.Background(), dd)
				time.Sleep(10 * time.Millisecond)
			}
		}()
		var told []uint64
		for c := range clicks.Changes(context.Background(), dd) {
			require.Equal(t, len(told) > 0, c.Old.Value() > 0)
			if told = append(told, c.Value.Value()); c.Value.Value() == 1000 {
				break
			}
			time.Sleep(3 * time.Second)
		}
		require.LessOrEqual(t, len(told), 6)
	})
}

// The loop ends with its context, even while the body runs, and with the replicator.
func TestChanges_End(t *testing.T) {
	alone(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		for i := range 5 {
			put(t, dd, carts.Key(fmt.Sprint(i)), "a")
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		n := 0
		for range carts.Changes(ctx, dd) {
			n++
			cancel()
		}
		require.Equal(t, 1, n)
		for range carts.Changes(ctx, dd) {
			t.Fatal("after the end")
		}
		h := hear(dd, ofCarts)
		synctest.Wait()
		require.Len(t, h.take(), 5)
		_, err := cart.Update(context.Background(), dd, func(*crdt.Writer, *items) error {
			for c := range carts.Changes(context.Background(), dd) {
				require.ErrorIs(t, c.Err, distributeddata.ErrInvalid)
			}
			return nil
		}, local)
		require.NoError(t, err)
		require.NoError(t, dd.Close(context.Background()))
		ended := make(chan struct{})
		go func() { h.stop(); close(ended) }()
		synctest.Wait()
		<-ended
		for range carts.Changes(context.Background(), dd) {
			t.Fatal("after Close")
		}
	})
}

// A loop continues in the next incarnation of the member, with what it yielded in the previous one.
func TestRejoin_LoopsOverChangesContinue(t *testing.T) {
	runRejoin(t, 3, distributeddata.Config{}, func(c *rejoinCluster) {
		m := c.Member(0)
		dd := c.dd[m]
		put(t, dd, carts.Key("1"), "a")
		h := hear(dd, ofCarts)
		defer h.stop()
		time.Sleep(time.Second)
		require.Equal(t, []string{"cart-1 [][a]"}, h.take())
		c.alone(m)
		put(t, dd, carts.Key("1"), "alone")
		put(t, c.at(1), carts.Key("2"), "elsewhere")
		time.Sleep(time.Second)
		require.Equal(t, []string{"cart-1 [a][a alone]"}, h.take())
		require.NoError(t, c.end(m))
		time.Sleep(time.Minute)
		require.Empty(t, h.take())
		c.ready(c.again(m))
		time.Sleep(time.Second)
		require.Equal(t, []string{"cart-2 [][elsewhere]"}, h.take())
		put(t, dd, carts.Key("1"), "again")
		time.Sleep(time.Second)
		require.Equal(t, []string{"cart-1 [a alone][a again alone]"}, h.take())
	})
}

// A change set costs as much as the change: an element of a hundred thousand takes a handful of
// allocations.
func TestChanged_CostsWhatChanged(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		ctx := context.Background()
		set := distributeddata.NewKey("set", crdt.ORSet[int]{})
		lww := distributeddata.NewKey("map", crdt.LWWMap[int, string]{})
		oldSet, err := set.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[int]) error {
			for i := range 100_000 {
				v.Add(w, i)
			}
			return nil
		}, local)
		require.NoError(t, err)
		newSet, err := set.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[int]) error {
			v.Remove(w, 77_777)
			v.Add(w, 200_000)
			return nil
		}, local)
		require.NoError(t, err)
		oldMap, err := lww.Update(ctx, dd, func(w *crdt.Writer, v *crdt.LWWMap[int, string]) error {
			for i := range 100_000 {
				v.Set(w, i, "before")
			}
			return nil
		}, local)
		require.NoError(t, err)
		newMap, err := lww.Update(ctx, dd, func(w *crdt.Writer, v *crdt.LWWMap[int, string]) error {
			v.Set(w, 55_555, "after")
			v.Remove(w, 66_666)
			return nil
		}, local)
		require.NoError(t, err)
		require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
			added, removed := newSet.Diff(oldSet)
			require.Equal(t, []int{200_000}, slices.Collect(added))
			require.Equal(t, []int{77_777}, slices.Collect(removed))
		}), 60.0)
		require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
			changed, removed := newMap.Diff(oldMap)
			for k, e := range changed {
				require.Equal(t, "55555after", fmt.Sprint(k, e))
			}
			require.Equal(t, []int{66_666}, slices.Collect(removed))
		}), 80.0)
	})
}

// BenchmarkChangeSet measures the change set of one added element of n.
func BenchmarkChangeSet(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("elems=%d", n), func(b *testing.B) {
			_, dd, stop := startMember()
			defer stop()
			ctx := context.Background()
			old, err := numbers.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[int]) error {
				for i := range n {
					v.Add(w, i)
				}
				return nil
			}, local)
			if err != nil {
				b.Fatal(err)
			}
			now, err := numbers.Update(ctx, dd, func(w *crdt.Writer, v *crdt.ORSet[int]) error {
				v.Add(w, n)
				return nil
			}, local)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				added, removed := now.Diff(old)
				for range added {
				}
				for range removed {
					b.Fatal("removed")
				}
			}
		})
	}
}
