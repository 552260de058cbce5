package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/sharding"
)

// livesAt returns an entity that lives at a node, after it has answered n other nodes.
func (c *testCluster) livesAt(n *node) string {
	for i := range 100 {
		id := fmt.Sprint("at", i)
		for _, from := range c.all() {
			_, err := from.ask(id, "who", 20*time.Second)
			require.NoError(c.t, err)
		}
		if c.alive.host(id) == n {
			return id
		}
	}
	c.t.Fatal("no entity lives there")
	return ""
}

// asks returns the errors of n calls from a node that are pending.
func (n *node) asks(id, text string, calls int) <-chan error {
	errs := make(chan error, calls)
	for range calls {
		go func() {
			_, err := n.ask(id, text, time.Hour)
			errs <- err
		}()
	}
	return errs
}

// Asks on their way to a killed host return as soon as the host is dropped.
func TestAsk_ToAKilledHostIsUnknownWhenItIsDropped(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		killed, from := c.node(1), c.node(2)
		id := c.livesAt(killed)
		c.Crash(killed.Member)
		killed.store.away(true)
		errs := from.asks(id, "lost", 10)
		time.Sleep(time.Second)
		require.Empty(t, errs)
		c.Unlist(c.Live(), []*simnet.Member{killed.Member})
		synctest.Wait()
		require.Len(t, errs, cap(errs))
		for range cap(errs) {
			err := <-errs
			require.ErrorIs(t, err, sharding.ErrUnknown)
			require.ErrorContains(t, err, "the host to which the message was sent is gone")
		}
		c.alive.forget(killed)
		require.NotZero(t, c.settled(2*stale, c.node(0), from))
		_, err := from.ask(id, "again", time.Second)
		require.NoError(t, err)
	})
}

// The host loses its lease while an entity is at work, and stays listed: pending Asks return when
// the shard is active elsewhere.
func TestAsk_ToALostTenureIsUnknownWhenTheNextBegins(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		host, from := c.node(1), c.node(2)
		id := c.livesAt(host)
		host.store.away(true)
		start := time.Now()
		errs := from.asks(id, "stuck", 1)
		require.ErrorIs(t, <-errs, sharding.ErrUnknown)
		require.Less(t, time.Since(start), 3*ttl)
		at, err := from.ask(id, "who", time.Second)
		require.NoError(t, err)
		require.NotEqual(t, host.ID, at)
	})
}

// In a planned move no message is lost, so no Ask reports a loss, not even one whose answer comes
// after the move.
func TestAsk_IsAnsweredThroughAPlannedMove(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		leaver, from := c.node(1), c.node(2)
		id := c.livesAt(leaver)
		slow := from.asks(id, "later", 3)
		const n = 300
		errs, left := make(chan error, n), make(chan error, 1)
		for k := range n {
			if k == n/2 {
				go func() { left <- leaver.region.Close(context.Background()) }()
			}
			go func() {
				_, err := from.ask(fmt.Sprint("x", k%20), fmt.Sprint(k), time.Minute)
				errs <- err
			}()
			time.Sleep(10 * time.Millisecond)
		}
		for range n {
			require.NoError(t, <-errs)
		}
		require.NoError(t, <-left)
		for range cap(slow) {
			require.NoError(t, <-slow)
		}
	})
}

// An Ask that no member will answer any more ends with the incarnation of this member.
func TestAsk_EndsWithTheLifeOfItsMember(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		id := c.livesAt(c.node(0))
		errs := c.node(1).asks(id, "swallow", 1)
		time.Sleep(time.Second)
		require.NoError(t, c.node(1).leave(20*time.Second))
		synctest.Wait()
		require.Len(t, errs, 1)
		require.ErrorIs(t, <-errs, sharding.ErrUnknown)
		_, err := c.node(1).region.Ref(id).Ask(context.Background(), wrapperspb.String("x"))
		require.ErrorIs(t, err, sharding.ErrClosed)
	})
}

// A host that has no tenure of the shard says so to the caller.
func TestAsk_ThatMeetsNoTenureIsUndelivered(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		host, from := c.node(1), c.node(0)
		id := c.livesAt(host)
		c.Net.Partition([]string{host.Address}, []string{from.Address})
		host.store.away(true)
		for host.region.Status().Count(sharding.Active) > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		c.Net.Heal() // nothing of what the host said has arrived
		_, err := from.ask(id, "nobody", time.Minute)
		require.ErrorIs(t, err, sharding.ErrUndelivered)
		require.NotErrorIs(t, err, sharding.ErrUnknown)
	})
}
