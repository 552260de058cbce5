package singleton_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/singleton"
)

// akka, pekko, akka.net: an oldest member that never reached the store blocked the singleton,
// although a younger member could hold the lease.
func TestScenario_OldestWithoutStoreLetsTheNextHost(t *testing.T) {
	run(t, 3, options{away: true}, func(c *testCluster) {
		c.node(1).store.away(false)
		c.node(2).store.away(false)
		host, took := c.found(c.node(2), time.Minute)
		require.Equal(t, "m001", host)
		require.Less(t, took, 20*time.Second, "Settle, StoreTimeout and a poll")
		t.Logf("hosted after %v", took)
		time.Sleep(5 * time.Minute)
		require.Equal(t, []string{"m001"}, c.alive.starts, "it stays")
	})
}

// The host loses its store for a long time: the next oldest takes over when the lease has expired.
// When the store is back, the oldest waits for a while, and then no message is lost in the move.
func TestStore_SilentAtTheHostMovesTheInstance(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 20*time.Second)
		}
		c.node(0).store.away(true)
		time.Sleep(ttl)
		c.Member(2).System.Root.Send(c.node(2).single.PID(), wrapperspb.String("kept"))
		host, took := c.found(c.node(2), time.Minute)
		require.Equal(t, "m001", host)
		require.Less(t, took, stale+time.Second)
		host, _ = c.found(c.node(0), time.Second)
		require.Equal(t, "m001", host)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"m000", "m001"}, c.alive.starts)

		c.node(0).store.away(false)
		time.Sleep(9 * time.Second)
		host, _ = c.found(c.node(2), time.Second)
		require.Equal(t, "m001", host, "not at once")
		const n = 200
		for k := range n {
			c.Member(2).System.Root.Send(c.node(2).single.PID(),
				wrapperspb.String(fmt.Sprint("x", k)))
			time.Sleep(20 * time.Millisecond)
		}
		host, _ = c.found(c.node(2), time.Second)
		require.Equal(t, "m000", host)
		require.Equal(t, append([]string{"kept"}, texts("x", n)...), c.alive.notes())
		require.Less(t, c.alive.gap(), 500*time.Millisecond)
	})
}

// The gate is shut: a guard of the node was lost, or another fragment has the arbiter lease.
func TestGate_ShutStopsTheInstanceAndLetsTheNextHost(t *testing.T) {
	run(t, 3, options{}, func(c *testCluster) {
		for i := range 3 {
			c.found(c.node(i), 20*time.Second)
		}
		g := gate.Of(c.Member(0).System)
		for range 100 {
			// 100ms each
			c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("nap"))
		}
		time.Sleep(50 * time.Millisecond)
		start := time.Now()
		g.Shut("guard", "lost")
		for i := range 3 {
			host, _ := c.found(c.node(i), 20*time.Second)
			require.Equal(t, "m001", host)
		}
		require.Less(t, time.Since(start), 1500*time.Millisecond)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"m000", "m001"}, c.alive.starts)
		for range 10 { // the gate opens for moments
			g.Let("guard")
			time.Sleep(3 * time.Second)
			g.Shut("guard", "lost")
			time.Sleep(3 * time.Second)
		}
		require.Equal(t, []string{"m000", "m001"}, c.alive.starts)
		g.Let("guard")
		time.Sleep(15 * time.Second)
		host, _ := c.found(c.node(2), time.Second)
		require.Equal(t, "m000", host)
		require.Equal(t, []string{"m000", "m001", "m000"}, c.alive.starts)
	})
}

// While every gate is shut no member hosts, and messages wait.
func TestGate_ShutEverywhereKeepsMessages(t *testing.T) {
	run(t, 2, options{}, func(c *testCluster) {
		c.found(c.node(1), 20*time.Second)
		for i := range 2 {
			gate.Of(c.Member(i).System).Shut("guard", "lost")
		}
		time.Sleep(2 * time.Second)
		require.Zero(t, c.alive.count())
		c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("kept"))
		time.Sleep(time.Minute)
		require.Zero(t, c.alive.count())
		gate.Of(c.Member(1).System).Let("guard")
		host, took := c.found(c.node(0), 10*time.Second)
		require.Equal(t, "m001", host)
		require.Less(t, took, 3*time.Second)
		require.Equal(t, []string{"kept"}, c.alive.notes())
	})
}

// Members start one after another. Each sees only itself at first, and then the others in any
// order. The instance is made once, and stays.
func TestStart_TheInstanceIsMadeOnceAndDoesNotMove(t *testing.T) {
	for name, s := range map[string]struct {
		cfg    singleton.Config
		starts [3]time.Duration // of the processes
		seen   time.Duration    // from the last start until the members see each other
	}{
		"within a second": {starts: [3]time.Duration{0, 100, 900}, seen: 600},
		"at once":         {starts: [3]time.Duration{0, 0, 0}, seen: 1500},
		"late, with MinMembers": {cfg: singleton.Config{MinMembers: 3}, starts: [3]time.Duration{
			0, 1500, 3000}, seen: 5000},
		"late, with long Settle": {cfg: singleton.Config{Settle: 9 * time.Second},
			starts: [3]time.Duration{0, 1500, 3000}, seen: 3000},
	} {
		// first is the member that is up first; at equal stamps the ids decide the order of age.
		for first := range 3 {
			t.Run(fmt.Sprint(name, " ", first), func(t *testing.T) {
				run(t, 0, options{cfg: s.cfg}, func(c *testCluster) {
					begun := time.Now()
					var all []*simnetMember
					for i := range 3 {
						time.Sleep(time.Until(begun.Add(s.starts[i] * time.Millisecond)))
						m := c.Start(fmt.Sprintf("node-%d:1", (i+first)%3))
						c.List([]*simnetMember{m}, []*simnetMember{m})
						all = append(all, m)
					}
					time.Sleep(s.seen * time.Millisecond)
					for i := range 3 {
						c.List(all[(i+first)%3:(i+first)%3+1], all)
						synctest.Wait()
					}
					host, _ := c.found(c.nodes[all[2]], 20*time.Second)
					time.Sleep(30 * time.Second)
					require.Equal(t, []string{host}, c.alive.starts)
					t.Logf("made after %v", c.alive.begun.Sub(begun))
				})
			})
		}
	}
}

// MinMembers applies only to the start.
func TestMinMembers_FewerLaterAreEnough(t *testing.T) {
	run(t, 3, options{cfg: singleton.Config{MinMembers: 3}}, func(c *testCluster) {
		c.found(c.node(2), time.Second)
		for i := range 2 {
			require.NoError(t, c.node(i).leave(20*time.Second))
			c.Leave(c.Member(i))
		}
		host, _ := c.found(c.node(2), 10*time.Second)
		require.Equal(t, "m002", host)
	})
	var log warnings
	run(t, 2, options{cfg: singleton.Config{MinMembers: 3}, system: log.system},
		func(c *testCluster) {
			time.Sleep(time.Hour)
			require.Zero(t, c.alive.count())
			const line = "has not seen MinMembers together"
			require.Contains(t, log.first(t, line), "seen=2 MinMembers=3")
			require.Len(t, log.With(line), 1, "it is said once, by the member that would host")
		})
}

// One of three members is gone for good. A member that has been restarted since then has never seen
// three, and hosts when the other one crashes.
func TestMinMembers_ARestartedMemberHostsWhileOneIsGone(t *testing.T) {
	run(t, 3, options{cfg: singleton.Config{MinMembers: 3}}, func(c *testCluster) {
		c.found(c.node(1), time.Second)
		crash := func(i int) {
			c.Crash(c.Member(i))
			c.node(i).store.away(true)
			c.Unlist(c.Live(), []*simnetMember{c.Member(i)})
			time.Sleep(10 * time.Second)
		}
		crash(2)
		crash(1)
		m := c.Start("again:1")
		c.List(c.Live(), []*simnetMember{m})
		c.List([]*simnetMember{m}, c.Live())
		c.found(c.nodes[m], 10*time.Second)
		time.Sleep(2 * time.Second)
		crash(0)
		host, took := c.found(c.nodes[m], time.Minute)
		require.Equal(t, m.ID, host)
		t.Logf("after %v", took)
	})
}

// The store is unavailable for all members for a long time, and is available again for all of them,
// or for one that is not the oldest.
func TestStore_SilentEverywhereIsSoonFoundAgain(t *testing.T) {
	for name, o := range map[string]struct {
		back   []int
		within time.Duration
	}{
		"for all":        {[]int{0, 1, 2}, 5 * time.Second}, // the last host can release
		"for the second": {[]int{1}, stale + 12*time.Second},
		"for the last":   {[]int{2}, stale + 2*time.Second}, // this member is the one that tries
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 3, options{}, func(c *testCluster) {
				for i := range 3 {
					c.found(c.node(i), 20*time.Second)
				}
				for i := range 3 {
					c.node(i).store.away(true)
				}
				time.Sleep(10 * time.Minute)
				require.Zero(t, c.alive.count())
				for _, i := range o.back {
					c.node(i).store.away(false)
				}
				host, took := c.found(c.node(0), time.Minute)
				require.Less(t, took, o.within)
				t.Logf("at %s after %v", host, took)
				time.Sleep(time.Minute)
				host, _ = c.found(c.node(0), time.Second)
				require.Equal(t, fmt.Sprintf("m%03d", o.back[0]), host)
				require.LessOrEqual(t, len(c.alive.starts), 3, "one move at most: %v",
					c.alive.starts)
			})
		})
	}
}
