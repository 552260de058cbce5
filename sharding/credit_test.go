package sharding_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// A host is stopped, and goes on: meanwhile it is sent a bounded number of bytes, the rest waits at
// the sender, other hosts are reached at once, and nothing is lost.
func TestCredit_AStoppedHostHoldsUpNoOther(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		sender, stopped, fine := c.node(0), "", ""
		for k := range 30 {
			id := fmt.Sprint("e", k)
			switch sender.region.Status().Shards[sender.region.Ref(id).Shard()].Home {
			case c.node(1).ID:
				stopped = id
			case c.node(2).ID:
				fine = id
			}
		}
		c.Freeze(c.node(1).Member)
		const n = 4000
		for k := range n {
			sender.tell(stopped, fmt.Sprint(k, strings.Repeat(" ", 1000)))
		}
		time.Sleep(100 * time.Millisecond)
		waiting := sender.region.Status().Shards[sender.region.Ref(stopped).Shard()].Waiting
		require.InDelta(t, n-(2<<20)/(1000+64), waiting, 20)
		begun := time.Now()
		home, err := sender.ask(fine, "who", time.Second)
		require.NoError(t, err)
		require.Equal(t, c.node(2).ID, home)
		require.Less(t, time.Since(begun), 50*time.Millisecond, "in virtual time")
		time.Sleep(time.Second)
		c.Thaw(c.node(1).Member)
		time.Sleep(2 * time.Second)
		var want []string
		for k := range n {
			want = append(want, fmt.Sprint(k, strings.Repeat(" ", 1000)))
		}
		require.Equal(t, want, c.alive.notes(stopped+" "))
		require.Zero(t, sender.region.Stats().Refused)
	})
}

// A host that stays stopped: what waits for it is bounded, and the sender is told.
func TestCredit_WhatWaitsForAStoppedHostIsBounded(t *testing.T) {
	cfg := func(int) sharding.Config {
		return sharding.Config{Type: "cart", Shards: 2, Buffer: 800}
	}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		sender, id := c.node(0), "x"
		for k := 0; sender.region.Status().Shards[sender.region.Ref(id).Shard()].Home != c.node(
			1).ID; k++ {
			id = fmt.Sprint("e", k)
		}
		c.Freeze(c.node(1).Member)
		text := strings.Repeat("x", 10_000)
		for range 1000 {
			_ = sender.region.Ref(id).Tell(wrapperspb.String(text))
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, 100, sender.region.Status().Shards[sender.region.Ref(id).Shard()].Waiting)
		require.InDelta(t, 1000-100-(2<<20)/10_064, sender.region.Stats().Refused, 5)
		_, err := sender.ask(id, "who", time.Second)
		require.ErrorIs(t, err, sharding.ErrBufferFull)
		c.Thaw(c.node(1).Member)
		time.Sleep(2 * time.Second)
		home, err := sender.ask(id, "who", time.Second)
		require.NoError(t, err)
		require.Equal(t, c.node(1).ID, home)
	})
}
