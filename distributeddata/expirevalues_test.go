package distributeddata_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/settings"
)

// An entry's own time to live takes precedence over Config.Expiry, also at members without it,
// until another one is set or the entry is emptied or deleted.
func TestExpireAfter(t *testing.T) {
	runVaried(t, 3, forgetful, without(first), func(c *cluster) {
		ctx := context.Background()
		a, b := xs.Key("a"), distributeddata.NewKey("b", items{})
		c.put(0, a, "1", distributeddata.All, distributeddata.ExpireAfter(time.Hour))
		c.put(0, b, "1", distributeddata.All, distributeddata.ExpireAfter(time.Minute))
		time.Sleep(time.Minute)
		c.everywhere(b, "1")
		time.Sleep(time.Minute)
		c.everywhere(b)
		time.Sleep(58 * time.Minute)
		c.everywhere(a, "1")
		time.Sleep(time.Minute)
		c.put(1, a, "2", local) // keeps it
		time.Sleep(time.Hour)
		c.everywhere(a, "1", "2")
		time.Sleep(time.Hour)
		c.everywhere(a)

		// the first in turn may be the member that does not know of it
		const late = gone + 14*time.Second
		c.put(2, a, "3", distributeddata.All)
		time.Sleep(late)
		c.everywhere(a)

		c.put(2, a, "4", distributeddata.All, distributeddata.ExpireAfter(time.Hour))
		_, err := a.Update(ctx, c.at(2), func(w *crdt.Writer, v *items) error {
			v.Remove(w, "4")
			return nil
		}, local)
		require.NoError(t, err)
		c.put(2, a, "5", local)
		time.Sleep(late)
		c.everywhere(a)

		c.put(2, a, "6", distributeddata.All, distributeddata.ExpireAfter(time.Hour))
		c.put(1, a, "7", distributeddata.All, distributeddata.ExpireAfter(time.Minute))
		time.Sleep(2 * time.Minute)
		c.everywhere(a)

		c.Member(0).System.Root.Send(c.at(0).PID(), b.UpdateMessage(adding("m"), local,
			distributeddata.ExpireAfter(time.Minute)))
		time.Sleep(time.Second)
		c.everywhere(b, "m")
		time.Sleep(2 * time.Minute)
		c.everywhere(b)
	})
}

func TestExpireAfter_WhatCannotBeIsRefused(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		ctx, none := context.Background(), func(*crdt.Writer, *items) error { return nil }
		for d, why := range map[time.Duration]string{
			0:               "must be at least twice ClockSkew, 10s",
			-time.Hour:      "ExpireAfter is -1h0m0s, must be at least twice ClockSkew, 10s",
			9 * time.Second: "ExpireAfter is 9s, must be at least twice ClockSkew, 10s",
			1<<63 - 1:       "must be at most a hundred years",
		} {
			_, err := cart.Update(ctx, c.at(0), none, local, distributeddata.ExpireAfter(d))
			require.ErrorIs(t, err, distributeddata.ErrInvalid)
			require.ErrorContains(t, err, why)
			require.ErrorContains(t, err, `key "cart"`)
		}
		hour := distributeddata.ExpireAfter(time.Hour)
		require.ErrorIs(t, cart.Delete(ctx, c.at(0), local, hour), distributeddata.ErrInvalid)
	})
}

func TestExpiry_BadSettingsAreNamed(t *testing.T) {
	for _, c := range []struct {
		skew   time.Duration
		expiry map[string]time.Duration
		want   []string
	}{
		{0, map[string]time.Duration{"a": 9 * time.Second, "b*": -1, "c": 10 * time.Second},
			[]string{
				`Expiry: "a" is 9s, must be at least twice ClockSkew, 10s`,
				`Expiry: "b*" is -1ns, must be at least twice ClockSkew, 10s`,
			}},
		{time.Second, map[string]time.Duration{"": time.Hour, "a*b": time.Hour, "\xff": time.Hour,
			"c": 1<<63 - 1}, []string{
			`an entry is empty; "*" stands for all keys`,
			`"a*b" has a star that is not its last character`, `"\xff" is not UTF-8`,
			`"c" is 2562047h47m16.854775807s, must be at most a hundred years`,
		}},
		{time.Microsecond, nil, []string{"ClockSkew is 1µs, must be from 1ms to 1h"}},
		{2 * time.Hour, nil, []string{"ClockSkew is 2h0m0s, must be from 1ms to 1h"}},
		{-1, nil, []string{"ClockSkew is -1ns"}},
	} {
		err := settings.Check(distributeddata.Config{ClockSkew: c.skew, Expiry: c.expiry})
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		for _, want := range c.want {
			require.ErrorContains(t, err, want)
		}
	}
	require.NoError(t, settings.Check(distributeddata.Config{ClockSkew: time.Millisecond,
		Expiry: map[string]time.Duration{"*": 2 * time.Millisecond}}))
}

// An exact name takes precedence over prefixes, and a longer prefix over a shorter one.
func TestExpiry_TheNearestPatternCounts(t *testing.T) {
	run(t, 2, forgetful, func(c *cluster) {
		for _, name := range []string{"exact", "long-1", "other"} {
			c.put(0, xs.Key(name), "1", distributeddata.All)
		}
		time.Sleep(gone)
		require.Equal(t, []string{"x-exact", "x-long-1"}, slices.Collect(c.at(1).Keys()))
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"x-long-1"}, slices.Collect(c.at(1).Keys()))
		time.Sleep(70 * time.Minute)
		require.Empty(t, slices.Collect(c.at(1).Keys()))
	})
}

// expiring is how one type is tested.
type expiring struct {
	set func(dd *distributeddata.Replicator, name string,
		at distributeddata.Consistency, opts ...distributeddata.Option) error
	get func(dd *distributeddata.Replicator, name string) ([]byte, error)
}

func expiringOf[T crdt.Value[T]](empty T, modify func(w *crdt.Writer, v *T) error) expiring {
	return expiring{
		func(dd *distributeddata.Replicator, name string,
			at distributeddata.Consistency, opts ...distributeddata.Option) error {
			_, err := distributeddata.NewKey(name, empty).Update(context.Background(), dd, modify,
				at, opts...)
			return err
		},
		func(dd *distributeddata.Replicator, name string) ([]byte, error) {
			v, err := distributeddata.NewKey(name, empty).Get(context.Background(), dd)
			if err != nil {
				return nil, err
			}
			b, err := v.AppendBinary(nil)
			if err == nil {
				_, err = empty.Decode(b)
			}
			return b, err
		},
	}
}

// No type notices that its entry expires: it is read, changed, encoded and merged as usual, and its
// size is that of its value.
func TestExpiry_TypesDoNotSeeIt(t *testing.T) {
	types := map[string]expiring{
		"GCounter": expiringOf(crdt.GCounter{}, func(w *crdt.Writer, v *crdt.GCounter) error {
			v.Add(w, 1)
			return nil
		}),
		"PNCounter": expiringOf(crdt.PNCounter{}, func(w *crdt.Writer, v *crdt.PNCounter) error {
			v.Add(w, 1)
			return nil
		}),
		"GSet": expiringOf(crdt.GSet[int]{}, func(w *crdt.Writer, v *crdt.GSet[int]) error {
			v.Add(w, 1, 2)
			return nil
		}),
		"ORSet": expiringOf(items{}, adding("1", "2")),
		"LWWRegister": expiringOf(crdt.LWWRegister[string]{},
			func(w *crdt.Writer, v *crdt.LWWRegister[string]) error {
				v.Set(w, "x")
				return nil
			}),
		"MVRegister": expiringOf(crdt.MVRegister[string]{},
			func(w *crdt.Writer, v *crdt.MVRegister[string]) error {
				v.Set(w, "x")
				return nil
			}),
		"EWFlag": expiringOf(crdt.EWFlag{}, func(w *crdt.Writer, v *crdt.EWFlag) error {
			v.Enable(w)
			return nil
		}),
		"LWWMap": expiringOf(crdt.LWWMap[string, int]{},
			func(w *crdt.Writer, v *crdt.LWWMap[string, int]) error {
				v.Set(w, "k", 1)
				return nil
			}),
		"ORMultiMap": expiringOf(crdt.ORMultiMap[string, int]{},
			func(w *crdt.Writer, v *crdt.ORMultiMap[string, int]) error {
				v.Add(w, "k", 1)
				return nil
			}),
		"PNCounterMap": expiringOf(crdt.PNCounterMap[string]{},
			func(w *crdt.Writer, v *crdt.PNCounterMap[string]) error {
				v.Add(w, "k", 1)
				return nil
			}),
		"own": expiringOf(basket{}, func(w *crdt.Writer, v *basket) error {
			v.put(w, "x")
			return nil
		}),
	}
	cfg := forgetful
	cfg.MaxElements = 2
	run(t, 2, cfg, func(c *cluster) {
		for _, name := range slices.Sorted(maps.Keys(types)) {
			x := types[name]
			for range 2 {
				require.NoError(t, x.set(c.at(0), "x-"+name, distributeddata.All,
					distributeddata.ExpireAfter(
						time.Minute)), name)
				require.NoError(t, x.set(c.at(0), "plain-"+name, distributeddata.All), name)
				time.Sleep(20 * time.Second) // the next use has a new stamp
			}
			mine, err := x.get(c.at(1), "x-"+name)
			require.NoError(t, err, name)
			plain, err := x.get(c.at(1), "plain-"+name)
			require.NoError(t, err, name)
			require.Len(t, mine, len(plain), name)
			time.Sleep(2 * time.Minute)
			_, err = x.get(c.at(1), "x-"+name)
			require.ErrorIs(t, err, distributeddata.ErrNotFound)
		}
	})
}

// The shards of a collection expire independently, and a use of any element keeps its shard.
func TestExpiry_OfShards(t *testing.T) {
	cfg := distributeddata.Config{Expiry: map[string]time.Duration{"users#*": 2 * time.Minute}}
	run(t, 2, cfg, func(c *cluster) {
		ctx := context.Background()
		users := distributeddata.NewShardedSet("users", 8, crdt.ORSet[string]{})
		for i := range 100 {
			require.NoError(t, users.Add(ctx, c.at(0), fmt.Sprint(i), local))
		}
		time.Sleep(time.Second)
		require.Len(t, slices.Collect(c.at(1).Keys()), 8)
		for range 100 {
			time.Sleep(5 * time.Second)
			there, err := users.Contains(ctx, c.at(1), "7")
			require.NoError(t, err)
			require.True(t, there)
		}
		require.Len(t, slices.Collect(c.at(0).Keys()), 1)
	})
}

// A read in a function of a transaction, or in an actor's turn, does not wait for its use to be
// announced, and one that is repeated without pause announces it once.
func TestExpiry_ManyReadsAreOneUse(t *testing.T) {
	run(t, 2, forgetful, func(c *cluster) {
		ctx := context.Background()
		keys := make([]distributeddata.Key[items], 1000)
		for i := range keys {
			keys[i] = xs.Key(fmt.Sprint(i))
			c.put(0, keys[i], "1", local)
		}
		time.Sleep(forgetAfter / 2)
		before := c.at(1).Status()
		for range 20 {
			for _, k := range keys {
				_, err := k.Get(ctx, c.at(1))
				require.NoError(t, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		after := c.at(1).Status()
		require.EqualValues(t, 1000, after.Touches-before.Touches)
		require.LessOrEqual(t, after.Updates-before.Updates, uint64(8), "gathered")
	})
}
