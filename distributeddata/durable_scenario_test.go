package distributeddata_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/testkit"
)

// The scenarios of Akka's DurableDataSpec and DurablePruningSpec. There, expired keys are also gone
// after a restart; nothing expires here, and deleted keys take their place.

var durableCounter = distributeddata.NewKey("d-counter", crdt.GCounter{})

// behinds runs a scenario without and with write-behind, on members whose keys "d-*" are durable.
func behinds(t *testing.T, n int, scenario func(c *cluster)) {
	for name, behind := range map[string]time.Duration{
		"at once": 0, "write-behind": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			run(t, n, distributeddata.Config{Durable: []string{"d-*"}, WriteBehind: behind},
				scenario)
		})
	}
}

func raising(n uint64) func(w *crdt.Writer, v *crdt.GCounter) error {
	return func(w *crdt.Writer, v *crdt.GCounter) error { v.Add(w, n); return nil }
}

func (c *cluster) increment(i int, n uint64, level distributeddata.Consistency) {
	c.t.Helper()
	_, err := durableCounter.Update(context.Background(), c.at(i), raising(n), level)
	require.NoError(c.t, err)
}

// counted reads the durable counter.
func (c *cluster) counted(dd *distributeddata.Replicator,
	level distributeddata.Consistency) uint64 {
	c.t.Helper()
	v, err := durableCounter.Get(context.Background(), dd, level)
	require.NoError(c.t, err)
	return v.Value()
}

// flushed waits until all disks have what their members hold.
func (c *cluster) flushed() {
	c.t.Helper()
	for _, m := range c.Live() {
		require.NoError(c.t, c.dd[m].Flush(context.Background()))
	}
}

// again crashes members with a power loss and restarts them, and returns their replicators.
func (c *cluster) again(all ...*simnet.Member) (out []*distributeddata.Replicator) {
	c.t.Helper()
	for _, m := range all {
		c.Crash(m)
		c.disks[m.Address].Crash()
	}
	for _, m := range all {
		out = append(out, c.dd[c.Restart(m)])
	}
	time.Sleep(20 * time.Millisecond) // they have started; their rows may not be loaded
	return out
}

// A single member has its counter after a restart. Messages sent while it loads are carried out
// afterwards, in order, and merged.
func TestScenario_DurableData_ACounterAfterARestart(t *testing.T) {
	behinds(t, 1, func(c *cluster) {
		t := c.t
		for range 3 {
			c.increment(0, 1, local)
		}
		c.flushed()
		c.wrap = func(s store.Store) store.Store {
			return &slowStore{s, 3 * time.Second, func() {}}
		}
		dd := c.again(c.Live()...)[0]
		require.Equal(t, "loading", dd.Status().Durable.Disk)
		_, err := durableCounter.Update(context.Background(), dd, raising(1), local)
		require.NoError(t, err)
		require.EqualValues(t, 4, c.counted(dd, local))
		require.NoError(t, dd.Flush(context.Background()))
		require.EqualValues(t, 4, c.counted(c.again(c.Live()...)[0], local))
	})
}

// A deleted key is absent after a restart, and absent from the disk; another key is present.
func TestScenario_DurableData_DeletedKeysLeaveTheDisk(t *testing.T) {
	behinds(t, 1, func(c *cluster) {
		t := c.t
		ctx := context.Background()
		for _, name := range []string{"d-A", "d-B", "d-C"} {
			_, err := distributeddata.NewKey(name, items{}).Update(ctx, c.at(0), adding("x"), local)
			require.NoError(t, err)
		}
		require.NoError(t, distributeddata.NewKey("d-A", items{}).Delete(ctx, c.at(0), local))
		require.NoError(t, distributeddata.NewKey("d-C", items{}).Delete(ctx, c.at(0), local))
		c.flushed()
		m := c.Live()[0]
		dd := c.again(m)[0]
		for name, want := range map[string]error{"d-A": distributeddata.ErrNotFound, "d-B": nil,
			"d-C": distributeddata.ErrNotFound} {
			_, err := distributeddata.NewKey(name, items{}).Get(ctx, dd)
			require.ErrorIs(t, err, want, name)
		}
		require.NoError(t, dd.Flush(ctx))
		rows := map[string]int{}
		for r, err := range c.stores[m.Address].Load(ctx) {
			require.NoError(t, err)
			for _, name := range []string{"d-A", "d-B", "d-C"} {
				if strings.Contains(r.Key, name) {
					rows[name]++
				}
			}
		}
		require.Equal(t, map[string]int{"d-B": 1}, rows)
	})
}

// What two members have written and read together is present after both have restarted, at each
// level.
func TestScenario_DurableData_TwoMembersRestart(t *testing.T) {
	behinds(t, 2, func(c *cluster) {
		t := c.t
		for i := range 2 {
			c.increment(i, 1, distributeddata.Nodes(2))
			require.EqualValues(t, i+1, c.counted(c.at(i), distributeddata.Nodes(2)))
		}
		c.flushed()
		for _, dd := range c.again(c.Live()...) {
			require.EqualValues(t, 2, c.counted(dd, distributeddata.Nodes(2)))
			require.EqualValues(t, 2, c.counted(dd, local))
		}
	})
}

// An update received from another member, of a key never written here, is on this disk too.
func TestScenario_DurableData_WhatWasReceivedIsDurable(t *testing.T) {
	behinds(t, 2, func(c *cluster) {
		t := c.t
		c.increment(0, 7, local)
		time.Sleep(3 * time.Second)
		c.flushed()
		first, second := c.Member(0), c.Member(1)
		c.Crash(first) // and does not come back
		c.disks[first.Address].Crash()
		require.EqualValues(t, 7, c.counted(c.again(second)[0], local))
	})
}

// A response that says that the store has failed contains the request's Echo; the change stays in
// memory.
func TestScenario_DurableData_StoreFailureAnswersTheRequest(t *testing.T) {
	run(t, 1, distributeddata.Config{Durable: []string{"d-*"}}, func(c *cluster) {
		c.disks[c.Member(0).Address].Set(testkit.DiskFaults{FailSync: true})
		m := durableCounter.UpdateMessage(raising(1), local)
		m.Echo = "request 7"
		res, err := c.Member(0).System.Root.RequestFuture(c.at(0).PID(), m, 10*time.Second).Result()
		require.NoError(t, err)
		r, ok := res.(distributeddata.Response)
		require.True(t, ok, "%T", res)
		require.ErrorIs(t, r.Err(), distributeddata.ErrStore)
		require.ErrorIs(t, r.Err(), store.ErrFailed)
		require.Equal(t, "request 7", r.Echo())
		require.EqualValues(t, 1, c.counted(c.at(0), local))
	})
}

// Akka's DurablePruning: one of four members leaves, and its part of a counter stays; no member
// ever sees a different sum. Its address comes back with its old disk, twice, and the sum is the
// same, at all members and on their disks.
// Seen in akka 29270.
func TestScenario_DurablePruning_AnOldDiskComesBack(t *testing.T) {
	behinds(t, 4, func(c *cluster) {
		t := c.t
		ctx := context.Background()
		for i := range 4 {
			c.increment(i, uint64(i+1), distributeddata.All)
		}
		c.flushed()
		seen := func(when string) {
			t.Helper()
			for range 20 {
				for _, m := range c.Live() {
					require.EqualValues(t, 10, c.counted(c.dd[m], local),
						"%s, at %s", when, m)
				}
				time.Sleep(500 * time.Millisecond)
			}
		}
		last := c.Member(3)
		require.NoError(t, c.dd[last].Close(ctx))
		c.Leave(last)
		seen("after it has left")
		for round := range 2 {
			old := c.Restart(last)
			c.ready(old)
			seen(fmt.Sprint("with its old disk, round ", round))
			for _, m := range c.Live() {
				require.EqualValues(t, 10, c.counted(c.dd[m], distributeddata.Majority))
			}
			last = old
			if round == 0 {
				c.Crash(old)
			}
		}
		c.flushed()
		all := c.Live()
		c.again(all...)
		for _, m := range c.Live() {
			c.ready(m)
		}
		seen("after a restart of all")
	})
}
