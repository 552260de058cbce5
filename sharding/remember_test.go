package sharding_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding"
)

func remembering(int) sharding.Config {
	return sharding.Config{Type: "cart", Shards: 16, Remember: true, MinMembers: 3}
}

// Entities that have received one message live on without messages when their member leaves and
// when it dies.
func TestRemember_EntitiesLiveOn(t *testing.T) {
	for _, how := range []string{"leave", "crash"} {
		t.Run(how, func(t *testing.T) {
			run(t, 3, options{cfg: remembering, majority: true}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				for k := range 40 {
					_, err := c.node(1).ask(fmt.Sprint("e", k), "who", 3*time.Second)
					require.NoError(t, err)
				}
				require.Equal(t, 40, c.alive.count())
				if how == "leave" {
					require.NoError(t, c.node(0).leave(20*time.Second))
					time.Sleep(time.Second)
					require.Equal(t, 40, c.alive.count())
				} else {
					c.alive.forget(c.node(0))
					c.crash(c.node(0))
				}
				c.settled(stale+5*time.Second, c.node(1), c.node(2))
				time.Sleep(time.Second)
				require.Equal(t, 40, c.node(1).region.Status().Entities()+c.node(
					2).region.Status().Entities())
			})
		})
	}
}

// An entity that stops itself comes back; one that is forgotten comes back only for a message.
func TestForget_EndsIt(t *testing.T) {
	run(t, 3, options{cfg: remembering, majority: true}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		for _, id := range []string{"stops", "forgets", "returns"} {
			_, err := c.node(1).ask(id, "who", 3*time.Second)
			require.NoError(t, err)
		}
		c.node(1).tell("stops", "stop")
		c.node(1).tell("forgets", "forget")
		c.node(1).tell("returns", "forget")
		time.Sleep(time.Second)
		require.Equal(t, 1, c.alive.count())
		c.node(1).tell("returns", "again")
		time.Sleep(time.Second)
		require.Equal(t, 2, c.alive.count())
		require.Equal(t, []string{"again"}, c.alive.notes("returns "))
		for i := range 2 {
			require.NoError(t, c.node(i).leave(20*time.Second))
		}
		time.Sleep(5 * time.Second)
		require.Equal(t, 2, c.alive.count(), "elsewhere, the one that is forgotten is not started")
	})
}

// Without a majority the first message waits, and an entity already remembered in this tenure keeps
// running.
func TestRemember_WaitsForAMajority(t *testing.T) {
	run(t, 3, options{cfg: remembering, majority: true}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		n := c.node(0)
		var id string
		for k := 0; id == ""; k++ {
			ref := n.region.Ref(fmt.Sprint("e", k))
			if n.region.Status().Shards[ref.Shard()].State == sharding.Active {
				id = ref.ID()
			}
		}
		c.Net.Partition([]string{n.Address}, []string{c.Member(1).Address, c.Member(2).Address})
		_, err := n.ask(id, "who", 2*time.Second)
		require.ErrorIs(t, err, sharding.ErrUnknown)
		require.Zero(t, c.alive.count())
		c.Net.Heal()
		home, err := n.ask(id, "who", 10*time.Second)
		require.NoError(t, err)
		require.NotEmpty(t, home)
	})
}

// A removal that reaches some replicas five seconds late, or none for so long that the call ends
// with an error, does not remove an entity that was added again: replicas order the changes of a
// tenure.
func TestRemember_LateRemovalLosesNoEntity(t *testing.T) {
	for name, cut := range map[string]func(host, one, other string) [2][]string{
		"one replica is late": func(h, a, b string) [2][]string { return [2][]string{{h, a}, {b}} },
		"the host is alone":   func(h, a, b string) [2][]string { return [2][]string{{h}, {a, b}} },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, options{cfg: remembering, majority: true}, func(c *testCluster) {
				c.settled(20*time.Second, c.all()...)
				_, err := c.node(0).ask("returns", "who", 3*time.Second)
				require.NoError(t, err)
				host := c.alive.host("returns")
				one, other := c.node((host.Index+1)%3), c.node((host.Index+2)%3)
				parts := cut(host.Address, one.Address, other.Address)
				c.Net.Partition(parts[0], parts[1])
				host.tell("returns", "forget")
				time.Sleep(5 * time.Second)
				host.tell("returns", "again")
				c.Net.Heal()
				time.Sleep(5 * time.Second)
				require.Equal(t, []string{"again"}, c.alive.notes("returns "))
				c.alive.forget(host)
				c.crash(host)
				c.settled(stale+5*time.Second, one, other)
				time.Sleep(time.Second)
				require.NotNil(t, c.alive.host("returns"), "it runs without a message")
			})
		})
	}
}

// S16b: a new home that does not reach a majority does not know which entities are remembered, and
// starts none, although its own replica has some.
func TestRemember_ANewHomeReadsAMajority(t *testing.T) {
	run(t, 3, options{cfg: remembering, majority: true}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		last := c.node(2)
		for k := range 20 {
			_, err := last.ask(fmt.Sprint("e", k), "who", 5*time.Second)
			require.NoError(t, err)
		}
		before := len(last.region.Entities(100))
		require.Less(t, before, 20)
		c.crash(c.node(0))
		c.crash(c.node(1))
		time.Sleep(2 * stale)
		require.Equal(t, 16, last.region.Status().Count(sharding.Active))
		require.Len(t, last.region.Entities(100), before, "no majority has said what is remembered")
	})
}

// S16c: an entity is forgotten at a member that is cut off, and whose shard moves before the
// removal has reached the others. The new home knows the entity and starts it, and the late removal
// does not take it out of what the next home remembers.
func TestRemember_ANewHomeAddsAgainWhatItHasRead(t *testing.T) {
	run(t, 3, options{cfg: remembering, majority: true}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		far := c.node(2) // not the coordinator
		var id string
		for k := 0; id == ""; k++ {
			ref := far.region.Ref(fmt.Sprint("e", k))
			if far.region.Status().Shards[ref.Shard()].State == sharding.Active {
				id = ref.ID()
			}
		}
		_, err := far.ask(id, "who", 5*time.Second)
		require.NoError(t, err)
		c.Net.Partition([]string{far.Address}, []string{c.Member(0).Address, c.Member(1).Address})
		far.tell(id, "forget")
		time.Sleep(time.Second)
		require.Zero(t, c.alive.count(), "it has ended")
		c.settled(stale+time.Minute, c.node(0), c.node(1))
		time.Sleep(time.Second)
		require.Equal(t, 1, c.alive.count(), "the new home has not heard that it is forgotten")
		c.Net.Heal()
		time.Sleep(5 * time.Second)
		host := c.alive.host(id)
		require.NotEqual(t, far, host)
		c.alive.forget(host)
		c.crash(host)
		time.Sleep(stale + 20*time.Second)
		require.Equal(t, 1, c.alive.count())
		require.NotEqual(t, host, c.alive.host(id))
	})
}

// While no majority answers, the messages to new entities wait at their host, within Buffer, and
// further ones are refused and counted. What has waited is handled when a majority answers.
func TestRemember_WhatWaitsForAMajorityIsBounded(t *testing.T) {
	cfg := func(i int) sharding.Config {
		c := remembering(i)
		c.Buffer = 80
		return c
	}
	run(t, 3, options{cfg: cfg, majority: true}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		n := c.node(0)
		c.Net.Partition([]string{n.Address}, []string{c.Member(1).Address, c.Member(2).Address})
		sent, before := map[string]bool{}, n.region.Stats().Refused
		for k := 0; len(sent) < 400; k++ {
			ref := n.region.Ref(fmt.Sprint("e", k))
			if n.region.Status().Shards[ref.Shard()].State == sharding.Active {
				n.tell(ref.ID(), "x")
				sent[ref.ID()] = true
			}
		}
		time.Sleep(100 * time.Millisecond)
		refused := int(n.region.Stats().Refused - before)
		require.GreaterOrEqual(t, refused, 400-80)
		require.Less(t, refused, 400)
		held := 0
		for _, s := range n.region.Status().Shards {
			held += s.Held
		}
		require.Equal(t, 400-refused, held)
		c.Net.Heal()
		time.Sleep(10 * time.Second)
		handled := 0
		for id := range sent {
			handled += len(c.alive.notes(id + " "))
		}
		require.Equal(t, 400-refused, handled)
	})
}
