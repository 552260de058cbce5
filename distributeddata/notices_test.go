package distributeddata_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/testkit"
)

var carts = distributeddata.NewPrefix("cart-", items{})

// line formats a notice on one line.
func line(c *distributeddata.Changed[items]) string {
	s := fmt.Sprintf("%v %v%v", c.Key, slices.Collect(c.Old.All()), slices.Collect(c.Value.All()))
	if c.Deleted {
		s += " deleted"
	}
	if c.Err != nil {
		s += " " + c.Err.Error()
	}
	return s
}

// lines expects notices in any order.
func lines(p *testkit.Probe, want ...string) {
	for range want {
		got := testkit.Expect[string](p)
		i := slices.Index(want, got)
		if i < 0 {
			panic(fmt.Sprintf("%q is none of %q", got, want))
		}
		want = slices.Delete(want, i, i+1)
	}
}

func adapt(name string) func(*distributeddata.Changed[items]) any {
	return func(c *distributeddata.Changed[items]) any { return name + ": " + line(c) }
}

func put(t *testing.T, dd *distributeddata.Replicator, k distributeddata.Key[items],
	elems ...string) {
	t.Helper()
	_, err := k.Update(context.Background(), dd, addTo(elems...), local)
	require.NoError(t, err)
}

// Notices of a prefix identify the entry. Each subscriber is notified of a change once, through the
// most specific of its subscriptions, and through the next one when that ends.
func TestSubscribe_ByPrefix(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		ctx, p := context.Background(), testkit.NewProbe(t, system)
		one, two, other := carts.Key("1"), carts.Key("2"), distributeddata.NewKey("other", items{})
		put(t, dd, one, "a")
		put(t, dd, other, "x")
		carts.Subscribe(dd, p.PID(), adapt("carts"))
		lines(p, "carts: cart-1 [][a]")
		put(t, dd, two, "b")
		put(t, dd, other, "y")
		lines(p, "carts: cart-2 [][b]")

		all := distributeddata.NewPrefix("", items{})
		all.Subscribe(dd, p.PID(), adapt("all"))
		lines(p, "all: other [][x y]") // the carts are covered by the longer prefix
		stop := two.Subscribe(dd, p.PID(), adapt("two"))
		lines(p, "two: cart-2 [][b]")
		for _, k := range []distributeddata.Key[items]{one, two, other} {
			put(t, dd, k, "z")
		}
		lines(p, "carts: cart-1 [a][a z]", "two: cart-2 [b][b z]", "all: other [x y][x y z]")
		stop()
		require.NoError(t, two.Delete(ctx, dd, local))
		_, err := one.Update(ctx, dd, func(w *crdt.Writer, v *items) error {
			v.Clear(w)
			return nil
		}, local)
		require.NoError(t, err)
		lines(p, "carts: cart-1 [a z][] deleted", "carts: cart-2 [b z][] deleted")
		p.Send(dd.PID(), &distributeddata.Unsubscribe[items]{Key: carts, Subscriber: p.PID()})
		put(t, dd, one, "again")
		lines(p, "all: cart-1 [][again]")
		numbers := distributeddata.NewKey("number", crdt.GCounter{})
		_, err = numbers.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GCounter) error {
			v.Add(w, 1)
			return nil
		}, local)
		require.NoError(t, err)
		require.Contains(t, testkit.Expect[string](p), "all: number [][] key \"number\": "+
			distributeddata.ErrType.Error())
		p.ExpectNone(time.Second)
	})
}

func TestPrefix_ListsEntriesOfItsType(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		for range carts.Of(dd.Snapshot()) {
			t.Fatal("before the start")
		}
		up()
		put(t, dd, carts.Key("1"), "a")
		put(t, dd, carts.Key("3"), "c")
		put(t, dd, distributeddata.NewKey("cart", items{}), "no")
		put(t, dd, distributeddata.NewKey("carts", items{}), "no")
		_, err := distributeddata.NewKey("cart-2", crdt.GCounter{}).Update(context.Background(), dd,
			func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, 1); return nil }, local)
		require.NoError(t, err)
		var got []string
		for k, v := range carts.Of(dd.Snapshot()) {
			rest, ok := carts.Rest(k)
			require.True(t, ok)
			got = append(got, rest+v.String())
		}
		require.Equal(t, []string{"1{a}", "3{c}"}, got)
		_, ok := carts.Rest(cart)
		require.False(t, ok)
	})
}

// All operations, at every level, reject an empty name, and a star in a name, with helpful errors.
func TestErrInvalid_NamesThatCannotBe(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		ctx := context.Background()
		for id, why := range map[string]string{"": "empty", "cart-*": `NewPrefix("cart-", `,
			"*": "star", "\xff": "UTF-8", strings.Repeat("k", 513): "512"} {
			k := distributeddata.NewKey(id, items{})
			for _, at := range []distributeddata.Consistency{
				local, distributeddata.Majority, distributeddata.All,
				distributeddata.Linearizable, distributeddata.Nodes(2),
			} {
				for _, err := range []error{
					resultOf2(k.Get(ctx, dd, at)), resultOf2(k.Update(ctx, dd, addTo("a"), at)),
					k.Delete(ctx, dd, at),
					k.Delete(ctx, dd, at, distributeddata.Permanently),
					distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
						k.In(tx)
						return nil
					}, at),
				} {
					require.ErrorIs(t, err, distributeddata.ErrInvalid, "%q at %v", id, at)
					require.ErrorContains(t, err, why)
				}
			}
			require.ErrorIs(t, resultOf2(k.Of(dd.Snapshot())), distributeddata.ErrInvalid)
			n := 0
			for c := range k.Changes(ctx, dd) {
				require.ErrorIs(t, c.Err, distributeddata.ErrInvalid)
				n++
			}
			require.Equal(t, 1, n)
		}
		require.Empty(t, slices.Collect(dd.Keys()))
		put(t, dd, distributeddata.NewKey("a*b", items{}), "a star within is a star")
	})
}

// A subscription that is not valid is logged, with the reason; no notice is sent, and the others
// continue.
func TestSubscribe_WhatCannotBe(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		p := testkit.NewProbe(t, system)
		star := distributeddata.NewPrefix("cart-*", items{})
		elsewhere := actor.NewPID("elsewhere:1", p.PID().Id)
		testkit.ExpectLog(t, system, testkit.Log{Message: "subscription refused", Times: 7},
			func() {
				for _, m := range []any{
					&distributeddata.Subscribe[items]{Key: star, Subscriber: p.PID()},
					&distributeddata.Subscribe[items]{Key: distributeddata.NewKey("", items{}),
						Subscriber: p.PID()},
					&distributeddata.Subscribe[items]{Subscriber: p.PID()},
					&distributeddata.Subscribe[items]{Key: cart},
					&distributeddata.Subscribe[items]{Key: cart, Subscriber: elsewhere},
					&distributeddata.Subscribe[items]{
						Key:        distributeddata.NewPrefix("\xff", items{}),
						Subscriber: p.PID()},
					distributeddata.Subscribe[items]{Key: star, Subscriber: p.PID()},
					&distributeddata.Unsubscribe[items]{Key: cart, Subscriber: elsewhere},
					&distributeddata.Unsubscribe[items]{Subscriber: p.PID()},
					&distributeddata.Unsubscribe[items]{Key: star},
				} {
					p.Send(dd.PID(), m)
				}
				synctest.Wait()
			})
		put(t, dd, cart, "a")
		p.ExpectNone(time.Second)
	})
}

// A slow subscriber blocks no one, has a bounded number of notices waiting, and gets the newest
// value.
func TestSubscribe_ASlowSubscriberGetsTheNewest(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		release := make(chan struct{})
		var told []uint64
		slow := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if c, ok := ctx.Message().(*distributeddata.Changed[crdt.GCounter]); ok {
				<-release
				told = append(told, c.Value.Value())
			}
		}))
		quick := testkit.NewProbe(t, system)
		clicks.Subscribe(dd, slow, nil)
		clicks.Subscribe(dd, quick.PID(), nil)
		const n = 1000
		for i := range uint64(n) {
			require.NoError(t, click(context.Background(), dd))
			dd.FlushChanges()
			require.Equal(t, i+1, testkit.Expect[*distributeddata.Changed[crdt.GCounter]](
				quick).Value.Value())
		}
		close(release)
		time.Sleep(time.Second)
		synctest.Wait()
		require.LessOrEqual(t, len(told), 130)
		require.EqualValues(t, n, told[len(told)-1])
		require.True(t, slices.IsSorted(told))
		require.NoError(t, click(context.Background(), dd))
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, n+1, told[len(told)-1], "it is told as before")
		system.Root.Stop(slow)
	})
}

// A subscriber to a hundred thousand entries is notified of all of them, while others are served.
func TestSubscribe_ToALotOfEntries(t *testing.T) {
	const n = 100_000
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		ctx := context.Background()
		counters := distributeddata.NewPrefix("c-", crdt.GCounter{})
		change := func(keys int) {
			require.NoError(t, distributeddata.Atomically(ctx, dd,
				func(tx *distributeddata.Tx) error {
					for i := range keys {
						counters.Key(fmt.Sprint(i)).In(tx).Add(tx.Writer, 1)
					}
					return nil
				}, local))
		}
		change(n)
		told := map[string]uint64{}
		pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if c, ok := ctx.Message().(*distributeddata.Changed[crdt.GCounter]); ok {
				told[c.Key.ID()] += c.Value.Value() - c.Old.Value()
			}
		}))
		defer system.Root.Stop(pid)
		counters.Subscribe(dd, pid, nil)
		change(n / 100)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, told, n)
		for i := range n / 100 {
			require.EqualValues(t, 2, told[fmt.Sprint("c-", i)])
		}
	})
}

// The functions of a subscription by prefix may misbehave.
func TestHostile_AdaptOfAPrefix(t *testing.T) {
	for name, fail := range map[string]evil{"panic": func() {
		panic(badError{})
	}, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
				up func()) {
				up()
				p, good := testkit.NewProbe(t, system), testkit.NewProbe(t, system)
				for i := range 5 {
					put(t, dd, carts.Key(fmt.Sprint(i)), "a")
				}
				carts.Subscribe(dd, p.PID(), func(*distributeddata.Changed[items]) any {
					fail()
					return nil
				})
				carts.Subscribe(dd, good.PID(), nil)
				notice := func() {
					require.ErrorContains(t,
						testkit.Expect[*distributeddata.Changed[items]](p).Err, "Adapt")
					require.NoError(t, testkit.Expect[*distributeddata.Changed[items]](good).Err)
				}
				for range 5 {
					notice()
				}
				put(t, dd, carts.Key("0"), "b")
				notice()
				p.ExpectNone(time.Second)
				good.ExpectNone(time.Second)
			})
		})
	}
}

// Subscriptions by prefix continue when the replicator's actor is restarted, and when it starts
// empty.
func TestResume_SubscriptionsByPrefixGoOn(t *testing.T) {
	var f fuse
	f.run(t, func(c *cluster) {
		last := map[string]int{}
		system := c.Member(0).System
		pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*distributeddata.Changed[items]); ok {
				last[m.Key.ID()] = m.Value.Len()
			}
		}))
		defer system.Root.Stop(pid)
		carts.Subscribe(c.at(0), pid, nil)
		followed, ctx, end := map[string]int{}, context.Background(), make(chan struct{})
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			defer close(end)
			for m := range carts.Changes(ctx, c.at(0)) {
				followed[m.Key.ID()] = m.Value.Len()
			}
		}()
		for i := range 12 {
			panics := c.at(0).Status().Panics
			f.every.Store(true)
			_, _ = carts.Key("a").Update(context.Background(), c.at(0), addTo(fmt.Sprint(i)),
				distributeddata.Majority)
			f.every.Store(false)
			require.Greater(t, c.at(0).Status().Panics, panics)
			time.Sleep(5 * time.Second)
			put(t, c.at(1+i%2), carts.Key("b"), fmt.Sprint(i))
			time.Sleep(5 * time.Second)
			v, err := carts.Key("b").Get(context.Background(), c.at(0), distributeddata.Majority)
			require.NoError(t, err)
			require.Equal(t, i+1, v.Len())
			synctest.Wait()
			require.Equal(t, i+1, last["cart-b"])
			require.Equal(t, i+1, followed["cart-b"])
		}
		cancel()
		<-end
	})
}
