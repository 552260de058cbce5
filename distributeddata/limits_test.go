package distributeddata_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/meters/meterstest"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/testkit"
)

func TestLimits_OfTheSettings(t *testing.T) {
	for name, set := range map[string]func(c *distributeddata.Config, n int){
		"MaxEntries":       func(c *distributeddata.Config, n int) { c.MaxEntries = n },
		"MaxElements":      func(c *distributeddata.Config, n int) { c.MaxElements = n },
		"MaxBytes":         func(c *distributeddata.Config, n int) { c.MaxBytes = n },
		"MaxSubscriptions": func(c *distributeddata.Config, n int) { c.MaxSubscriptions = n },
		"MaxOperations":    func(c *distributeddata.Config, n int) { c.MaxOperations = n },
	} {
		for n, ok := range map[int]bool{0: true, 1: true, 1_000_000_000: true, -1: false,
			1_000_000_001: false} {
			var cfg distributeddata.Config
			set(&cfg, n)
			if ok {
				require.NoError(t, settings.Check(cfg), name)
				continue
			}
			require.ErrorIs(t, settings.Check(cfg), distributeddata.ErrInvalid)
			require.ErrorContains(t, settings.Check(cfg),
				fmt.Sprintf("%s is %d, must be from 1 to 1000000000", name, n))
		}
	}
}

func TestLimits_EntriesAndElements(t *testing.T) {
	reader := sdk.NewManualReader()
	cfg := distributeddata.Config{MaxEntries: 4, MaxElements: 6, Meters: sdk.NewMeterProvider(
		sdk.WithReader(reader))}
	run(t, 1, cfg, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		put := func(key string, elems ...string) error {
			_, err := distributeddata.NewKey(key, items{}).Update(ctx, dd, addTo(elems...), local)
			return err
		}
		require.NoError(t, put("a", "1", "2", "3"))
		require.NoError(t, put("b", "1"))
		require.Empty(t, dd.Status().NearLimits, "half is not more than half")
		require.NoError(t, put("c", "1"))
		require.Equal(t, []string{"MaxEntries"}, dd.Status().NearLimits)
		require.NoError(t, put("a", "4", "5", "6"), "six are allowed")
		require.Equal(t, []string{"MaxEntries", "MaxElements"}, dd.Status().NearLimits)
		require.EqualValues(t, 2, meterstest.Collect(t, reader)["concord.ddata.near_limit"])

		err := put("a", "7")
		require.ErrorIs(t, err, distributeddata.ErrLimit)
		require.EqualError(t, err,
			`key "a": distributeddata: over a limit: MaxElements is 6, and this would be 7 elements in a value`)
		require.NoError(t, put("a", "6"), "what adds nothing is allowed")
		err = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			distributeddata.NewKey("d", items{}).In(tx).Add(tx.Writer, "1")
			distributeddata.NewKey("e", items{}).In(tx).Add(tx.Writer, "1")
			return nil
		}, local)
		require.ErrorContains(t, err, "MaxEntries is 4, and this would be 5 entries")
		require.NoError(t, put("d", "1"))
		err = put("e", "1")
		require.EqualError(t, err,
			`key "e": distributeddata: over a limit: MaxEntries is 4, and this would be 5 entries`)

		var twice []string
		err = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			twice = append(twice, "run")
			distributeddata.NewKey("d", items{}).In(tx).Add(tx.Writer, "2")
			distributeddata.NewKey("f", items{}).In(tx).Add(tx.Writer, "1")
			return nil
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrLimit)
		require.NotErrorIs(t, err, distributeddata.ErrModify)
		require.Len(t, twice, 1)
		v, err := distributeddata.NewKey("d", items{}).Get(ctx, dd)
		require.NoError(t, err)
		require.Equal(t, 1, v.Len(), "nothing of it was done")
		_, err = distributeddata.NewKey("f", items{}).Get(ctx, dd)
		require.ErrorIs(t, err, distributeddata.ErrNotFound)

		require.NoError(t, distributeddata.NewKey("d", items{}).Delete(ctx, dd, local))
		require.NoError(t, put("e", "1"), "there is room again")
		time.Sleep(2 * time.Minute)
		require.Empty(t, dd.Status().NearLimits)
	})
}

// MaxBytes counts what a value takes after an update, whoever wrote it, and however it came here.
func TestLimits_Bytes(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 1, MaxBytes: 1000}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		a := distributeddata.NewKey("a", items{})
		put := func(dd *distributeddata.Replicator, elems ...string) error {
			v, err := a.Update(ctx, dd, addTo(elems...), local)
			if err != nil {
				require.ErrorIs(t, err, distributeddata.ErrLimit)
				require.NotErrorIs(t, err, distributeddata.ErrModify)
				require.Zero(t, v.Len(), "nothing was done")
			}
			return err
		}
		elem := func(name string, size int) string {
			return name + strings.Repeat(".", size-len(name))
		}
		require.NoError(t, put(dd, elem("1", 400)))
		require.Empty(t, dd.Status().NearLimits)
		require.NoError(t, put(dd, elem("2", 400)))
		require.Equal(t, []string{"MaxBytes"}, dd.Status().NearLimits)
		err := put(dd, elem("3", 400))
		require.ErrorContains(t, err,
			`key "a": distributeddata: over a limit: MaxBytes is 1000, and this would be 12`)
		require.ErrorContains(t, err, "bytes in a value")
		require.NoError(t, put(dd, elem("2", 400)), "what adds nothing is allowed")
		_, err = a.Update(ctx, dd, func(w *crdt.Writer, v *items) error {
			v.Remove(w, elem("1", 400))
			v.Add(w, elem("3", 401))
			return nil
		}, local)
		require.NoError(t, err, "the size in the end counts")

		err = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			distributeddata.NewKey("b", items{}).In(tx).Add(tx.Writer, "1")
			a.In(tx).Add(tx.Writer, elem("4", 400))
			return nil
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrLimit)
		_, err = distributeddata.NewKey("b", items{}).Get(ctx, dd)
		require.ErrorIs(t, err, distributeddata.ErrNotFound, "nothing of it was done")

		time.Sleep(time.Second)
		require.ErrorIs(t, put(c.at(1), elem("5", 400)), distributeddata.ErrLimit,
			"it came with updates")
		next := c.Restart(c.Member(1))
		c.ready(next)
		require.ErrorIs(t, put(c.dd[next], elem("5", 400)), distributeddata.ErrLimit,
			"it came with an answer")

		r := distributeddata.NewKey("r", crdt.LWWRegister[string]{})
		for i := range 5 { // a value that is replaced counts once
			_, err = r.Update(ctx, dd, func(w *crdt.Writer, v *crdt.LWWRegister[string]) error {
				v.Set(w, strings.Repeat(".", 600+i))
				return nil
			}, local)
			require.NoError(t, err)
		}
		require.NoError(t, a.Delete(ctx, dd, local))
		require.NoError(t, put(dd, elem("6", 400), elem("7", 400)), "there is room again")
	})
}

// Half of a limit is one line a minute, however often it is passed.
func TestLimits_AreLoggedOnceAMinute(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		n := distributeddata.NewKey("n", crdt.GSet[int]{})
		testkit.ExpectLog(t, system, testkit.Log{
			Message: "more than half of a limit is used", Attrs: map[string]any{
				"setting": "MaxElements", "limit": 1_000_000, "key": "n"}, Times: 2,
		}, func() {
			for second := range 100 {
				_, err := n.Update(context.Background(), dd,
					func(w *crdt.Writer, v *crdt.GSet[int]) error {
						for i := v.Len(); i < 500_001+second; i++ {
							v.Add(w, i)
						}
						return nil
					}, local)
				require.NoError(t, err)
				time.Sleep(time.Second)
			}
		})
	})
}

func TestLimits_WhatOthersMakeIsTaken(t *testing.T) {
	run(t, 3, distributeddata.Config{MaxEntries: 2}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1), addresses(c, 2))
		for i := range 3 {
			for n := range 2 {
				_, err := distributeddata.NewKey(fmt.Sprint(i, n), items{}).Update(
					context.Background(), c.at(i), addTo("x"), local)
				require.NoError(t, err)
			}
		}
		c.Net.Heal()
		time.Sleep(5 * time.Second)
		for i := range 3 {
			require.Equal(t, 6, c.at(i).Status().Keys)
			_, err := distributeddata.NewKey("more", items{}).Update(context.Background(), c.at(i),
				addTo("x"), local)
			require.ErrorIs(t, err, distributeddata.ErrLimit)
		}
	})
}

func TestLimits_OperationsUnderWay(t *testing.T) {
	run(t, 3, distributeddata.Config{MaxOperations: 2}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- c.add(0, "x", distributeddata.Majority) }()
		}
		synctest.Wait()
		ctx := context.Background()
		_, get := cart.Get(ctx, c.at(0), distributeddata.Majority)
		for what, err := range map[string]error{
			"update": c.add(0, "y", distributeddata.Majority), "get": get,
			"delete": cart.Delete(ctx, c.at(0), distributeddata.All),
			"transaction": distributeddata.Atomically(ctx, c.at(0),
				func(*distributeddata.Tx) error {
					return nil
				}, distributeddata.All),
		} {
			require.ErrorIs(t, err, distributeddata.ErrLimit, what)
			require.ErrorContains(t, err,
				"MaxOperations is 2, and this would be 3 pending operations")
		}
		require.Equal(t, []string{"MaxOperations"}, c.at(0).Status().NearLimits)
		if len(c.at(0).Status().Sent) > 0 && c.at(0).Status().Durable == nil {
			require.NoError(t, c.add(0, "z"), "what waits for nobody is no operation under way")
		}
		for range 2 {
			require.ErrorIs(t, <-done, distributeddata.ErrQuorum)
		}
		c.Net.Heal()
		time.Sleep(5 * time.Second)
		require.NoError(t, c.add(0, "y", distributeddata.Majority))
	})
}

func TestLimits_Subscriptions(t *testing.T) {
	run(t, 1, distributeddata.Config{MaxSubscriptions: 2}, func(c *cluster) {
		var p [3]*testkit.Probe
		for i := range p {
			p[i] = testkit.NewProbe(t, c.Member(0).System)
		}
		require.NoError(t, c.add(0, "x"))
		stop := cart.Subscribe(c.at(0), p[0].PID(), nil)
		testkit.Expect[*distributeddata.Changed[items]](p[0])
		require.Empty(t, c.at(0).Status().NearLimits)
		for range 2 { // the second is the same anew
			cart.Subscribe(c.at(0), p[1].PID(), nil)
			testkit.Expect[*distributeddata.Changed[items]](p[1])
		}
		require.Equal(t, []string{"MaxSubscriptions"}, c.at(0).Status().NearLimits)
		cart.Subscribe(c.at(0), p[2].PID(), nil) // refused
		p[2].ExpectNone(time.Minute)
		stop()
		cart.Subscribe(c.at(0), p[2].PID(), nil) // there is room again
		testkit.Expect[*distributeddata.Changed[items]](p[2])
	})
}

// An empty key is refused everywhere, at every level.
func TestKey_EmptyIsInvalidEverywhere(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		for _, k := range []distributeddata.Key[items]{distributeddata.NewKey("", items{}),
			distributeddata.NewPrefix("", items{}).Key(""), {}} {
			errs := map[string]error{}
			for _, at := range []distributeddata.Consistency{
				local, distributeddata.Majority, distributeddata.All,
				distributeddata.Linearizable, distributeddata.Nodes(2),
				distributeddata.Majority.Plus(1).AtLeast(2),
			} {
				_, errs[fmt.Sprint("Get at ", at)] = k.Get(ctx, dd, at)
				_, errs[fmt.Sprint("Update at ", at)] = k.Update(ctx, dd, addTo("x"), at)
				errs[fmt.Sprint("Delete at ", at)] = k.Delete(ctx, dd, at)
				errs[fmt.Sprint("Delete for good at ", at)] = k.Delete(ctx, dd, at,
					distributeddata.Permanently)
				p := testkit.NewProbe(t, c.Member(0).System)
				for name, m := range map[string]distributeddata.Message{"Get": k.GetMessage(at),
					"Update": k.UpdateMessage(addTo("x"), at), "Delete": k.DeleteMessage(at)} {
					p.Request(dd.PID(), m)
					errs[fmt.Sprint(name, " by message at ",
						at)] = testkit.Expect[distributeddata.Response](p).Err()
				}
			}
			_, errs["Of"] = k.Of(dd.Snapshot())
			errs["In"] = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
				k.In(tx).Add(tx.Writer, "x")
				return nil
			}, local)
			errs["DeleteIn"] = distributeddata.Atomically(ctx, dd,
				func(tx *distributeddata.Tx) error {
					k.DeleteIn(tx)
					return nil
				}, local)
			for ch := range k.Changes(ctx, dd) {
				errs["Changes"] = ch.Err
			}
			for call, err := range errs {
				require.ErrorIs(t, err, distributeddata.ErrInvalid, call)
				require.ErrorContains(t, err, "key is empty", call)
			}
			p := testkit.NewProbe(t, c.Member(0).System)
			k.Subscribe(dd, p.PID(), nil)()
			p.ExpectNone(time.Minute)
		}
		require.Zero(t, dd.Status().Keys)
	})
}

// The element after the largest number of elements that any value may have is an ErrLimit like any
// other.
func TestLimits_TheDefaultNumberOfElements(t *testing.T) {
	run(t, 1, distributeddata.Config{MinMembers: 1}, func(c *cluster) {
		const most = 1_000_000
		key := distributeddata.NewKey("large", crdt.GSet[int]{})
		add := func(from, to int) error {
			_, err := key.Update(context.Background(), c.at(0),
				func(w *crdt.Writer, v *crdt.GSet[int]) error {
					for i := range to - from {
						v.Add(w, from+i)
					}
					return nil
				}, local)
			return err
		}
		require.NoError(t, add(0, most))
		err := add(most, most+1)
		require.ErrorIs(t, err, distributeddata.ErrLimit)
		require.ErrorContains(t, err, "MaxElements is 1000000")
	})
}
