package distributeddata_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// forgetful is a cluster whose carts below "x-" expire after two minutes, except for one.
var forgetful = distributeddata.Config{
	Expiry: map[string]time.Duration{"x-*": 2 * time.Minute, "x-long-*": time.Hour,
		"x-exact": 10 * time.Minute},
}

const (
	forgetAfter = 2 * time.Minute
	// gone is when such an entry is certainly gone, where all members see each other: a quarter of
	// the time, twice the skew, and the heartbeat over which deletes are batched.
	gone = forgetAfter + forgetAfter/4 + 10*time.Second + 2*time.Second
)

var xs = distributeddata.NewPrefix("x-", items{})

func (c *cluster) put(i int, k distributeddata.Key[items], e string,
	at distributeddata.Consistency, opts ...distributeddata.Option) {
	c.t.Helper()
	_, err := k.Update(context.Background(), c.at(i), adding(e), at, opts...)
	require.NoError(c.t, err)
}

// there returns the content of an entry at a member, without using it.
func (c *cluster) there(i int, k distributeddata.Key[items]) []string {
	v, err := k.Of(c.at(i).Snapshot())
	if err != nil {
		require.ErrorIs(c.t, err, distributeddata.ErrNotFound)
	}
	return slices.Collect(v.All())
}

func (c *cluster) everywhere(k distributeddata.Key[items], want ...string) {
	c.t.Helper()
	for i := range c.Live() {
		require.Equal(c.t, want, c.there(i, k), "member %d", i)
	}
}

// akka ExpirySpec "expire key": an unused entry is deleted everywhere, in time, and not before; its
// name can be used again; other entries stay.
// Seen in akka 31731.
func TestExpiry_WhatNobodyUsesGoesEverywhere(t *testing.T) {
	run(t, 3, forgetful, func(c *cluster) {
		a, other := xs.Key("a"), distributeddata.NewKey("other", items{})
		c.put(0, a, "1", distributeddata.All)
		c.put(1, other, "1", distributeddata.All)
		time.Sleep(forgetAfter)
		c.everywhere(a, "1")
		time.Sleep(gone - forgetAfter)
		c.everywhere(a)
		c.everywhere(other, "1")
		for i := range 3 {
			_, err := a.Get(context.Background(), c.at(i))
			require.ErrorIs(t, err, distributeddata.ErrNotFound)
			require.Equal(t, []string{"other"}, slices.Collect(c.at(i).Keys()))
		}
		c.put(2, a, "2", distributeddata.All)
		c.everywhere(a, "2")
		time.Sleep(forgetAfter)
		c.everywhere(a, "2")
		time.Sleep(time.Hour)
		c.everywhere(a)
		require.Equal(t, uint64(2), c.at(0).Status().Expired+c.at(1).Status().Expired+c.at(
			2).Status().Expired)
	})
}

// akka ExpirySpec "not expire when updated or read": an entry used at one member stays at all of
// them. A use costs the others at most four small updates in the time to live.
func TestExpiry_UseAtOneMemberKeepsItEverywhere(t *testing.T) {
	for name, use := range map[string]func(c *cluster, k distributeddata.Key[items]) error{
		"update": func(c *cluster, k distributeddata.Key[items]) error {
			_, err := k.Update(context.Background(), c.at(1), func(w *crdt.Writer, v *items) error {
				v.Remove(w, "absent")
				return nil
			}, local)
			return err
		},
		"get": func(c *cluster, k distributeddata.Key[items]) error {
			_, err := k.Get(context.Background(), c.at(1))
			return err
		},
		"get at a majority": func(c *cluster, k distributeddata.Key[items]) error {
			_, err := k.Get(context.Background(), c.at(1), distributeddata.Majority)
			return err
		},
		"get with a new key": func(c *cluster, _ distributeddata.Key[items]) error {
			_, err := xs.Key("a").Get(context.Background(), c.at(1))
			return err
		},
		"message": func(c *cluster, k distributeddata.Key[items]) error {
			c.Member(1).System.Root.Send(c.at(1).PID(), k.GetMessage())
			return nil
		},
		"transaction": func(c *cluster, k distributeddata.Key[items]) error {
			return distributeddata.Atomically(context.Background(), c.at(1),
				func(tx *distributeddata.Tx) error {
					k.In(tx)
					return nil
				}, local)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, forgetful, func(c *cluster) {
				a := xs.Key("a")
				c.put(0, a, "1", distributeddata.All)
				events := c.at(1).Status().Updates
				for range 1200 {
					time.Sleep(time.Second)
					require.NoError(t, use(c, a))
				}
				c.everywhere(a, "1")
				cost := c.at(1).Status().Updates - events
				require.LessOrEqual(t, cost, uint64(4*10), "four in the time to live")
				require.GreaterOrEqual(t, cost, uint64(9))
				time.Sleep(gone)
				c.everywhere(a)
			})
		})
	}
}

// A subscriber, a loop over changes, a snapshot and a list do not use an entry, and are not
// notified of uses.
func TestExpiry_WatchingIsNoUse(t *testing.T) {
	run(t, 2, forgetful, func(c *cluster) {
		a := xs.Key("a")
		told, stop := c.told(1, a, xs)
		defer stop()
		c.put(0, a, "1", distributeddata.All)
		for range 5 {
			time.Sleep(forgetAfter / 4)
			_, err := a.Get(context.Background(), c.at(0)) // stamps it
			require.NoError(t, err)
		}
		for range 30 {
			time.Sleep(forgetAfter / 20)
			c.there(1, a)
			_ = slices.Collect(c.at(1).Keys())
		}
		time.Sleep(gone)
		want := []string{"[] [1] false false", "[1] [] true true"}
		require.Equal(t, want, told("actor"))
		require.Equal(t, want, told("loop"))
	})
}

// akka ExpirySpec, Expired: an expiry is distinguished from a deletion, and from an emptied value.
func TestExpiry_IsToldApart(t *testing.T) {
	run(t, 2, forgetful, func(c *cluster) {
		a := xs.Key("a")
		told, stop := c.told(1, a, a)
		defer stop()
		c.put(0, a, "1", distributeddata.All)
		time.Sleep(forgetAfter - time.Second)
		_, err := a.Get(context.Background(), c.at(0))
		require.NoError(t, err)
		time.Sleep(forgetAfter - time.Second)
		require.NoError(t, a.Delete(context.Background(), c.at(0), local))
		time.Sleep(time.Second)
		c.put(0, a, "2", distributeddata.All)
		time.Sleep(time.Second)
		_, err = a.Update(context.Background(), c.at(1), func(w *crdt.Writer, v *items) error {
			v.Remove(w, "2")
			return nil
		}, local)
		require.NoError(t, err)
		time.Sleep(time.Second)
		c.put(0, a, "3", distributeddata.All)
		time.Sleep(gone)
		want := []string{
			"[] [1] false false", "[1] [] true false", "[] [2] false false", "[2] [] true false",
			"[] [3] false false", "[3] [] true true",
		}
		require.Equal(t, want, told("actor"))
		require.Equal(t, want, told("loop"))
	})
}

// told subscribes an actor of a member and a loop to changes, and returns what they received.
func (c *cluster) told(i int, k distributeddata.Key[items], e interface {
	Changes(ctx context.Context,
		r *distributeddata.Replicator) iter.Seq[*distributeddata.Changed[items]]
},
) (lines func(who string) []string, stop func()) {
	var mu sync.Mutex
	all := map[string][]string{}
	add := func(who string, ch *distributeddata.Changed[items]) {
		mu.Lock()
		defer mu.Unlock()
		all[who] = append(all[who], fmt.Sprint(slices.Collect(ch.Old.All()), " ",
			slices.Collect(ch.Value.All()), " ", ch.Deleted, " ", ch.Expired))
	}
	root := c.Member(i).System.Root
	pid := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if ch, ok := ctx.Message().(*distributeddata.Changed[items]); ok {
			add("actor", ch)
		}
	}))
	k.Subscribe(c.at(i), pid, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ch := range e.Changes(ctx, c.at(i)) {
			add("loop", ch)
		}
	}()
	time.Sleep(time.Second)
	return func(who string) []string {
		mu.Lock()
		defer mu.Unlock()
		return all[who]
	}, func() { root.Stop(pid); cancel(); <-ended }
}
