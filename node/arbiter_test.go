package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/node/internal/arbiter"
	"github.com/concord-go/concord/testkit"
)

// arbitrate starts an arbiter on every member.
func arbitrate(c *testkit.Cluster, members int) {
	testkit.Each(c, func(m *testkit.Member) (struct{}, error) {
		stop := startArbiter(m.System, m.Session, "test",
			arbiter.Config{Members: members},
			func(err error) { m.System.Logger().Error("another store", slog.Any("error", err)) },
			new(atomic.Int64))
		_, err := lifecycle.OnStop(m.System, lifecycle.Leases, "majority", stop)
		return struct{}{}, err
	})
}

// rule returns the times of the arbiters.
func rule(c *testkit.Cluster) arbiter.Config {
	return arbiter.Config{TTL: c.Member(0).Session.TTL()}
}

// hosts returns the members where guarded work may run, by index.
func hosts(c *testkit.Cluster) (open []int) {
	for _, m := range c.Members() {
		if gate.Of(m.System).State().Open {
			open = append(open, m.Index)
		}
	}
	return open
}

// split splits the network, and makes every side see only itself.
func split(c *testkit.Cluster, sides ...[]int) {
	c.Partition(sides...)
	for _, m := range c.Members() {
		for _, side := range sides {
			if slices.Contains(side, m.Index) {
				continue
			}
			for _, i := range side {
				m.Drops(c.Member(i))
			}
		}
	}
}

// meet heals the network, and makes all members see each other.
func meet(c *testkit.Cluster) {
	c.Heal()
	for _, m := range c.Members() {
		m.Lists(c.Members()...)
	}
}

// holder returns the owner of the lease of the majority in the store.
func holder(t *testing.T, c *testkit.Cluster, from int) string {
	h, err := c.Member(from).Session.Lease(majorityLease("test")).Holder(context.Background())
	require.NoError(t, err)
	return h.Owner
}

// within waits in virtual time until ok returns true.
func within(t *testing.T, c *testkit.Cluster, d time.Duration, what string,
	ok func() bool) time.Duration {
	t.Helper()
	for took := time.Duration(0); took <= d; took += 100 * time.Millisecond {
		if ok() {
			return took
		}
		c.Advance(100 * time.Millisecond)
	}
	require.Fail(t, "not in time", "%s within %v; open: %v", what, d, hosts(c))
	return 0
}

func openAt(c *testkit.Cluster, want ...int) func() bool {
	return func() bool { return slices.Equal(hosts(c), want) }
}

// TestArbiter_TheMajorityHosts splits five members into three and two; the oldest of all is in the
// minority.
func TestArbiter_TheMajorityHosts(t *testing.T) {
	testkit.Run(t, 5, func(t *testing.T, c *testkit.Cluster) {
		arbitrate(c, 3)
		within(t, c, time.Second, "open everywhere", openAt(c, 0, 1, 2, 3, 4))
		oldest := map[int]bool{}
		for _, m := range c.Members() {
			o, _ := membership.Attach(m.System).View().Oldest("")
			oldest[index(c, o.ID)] = true
		}
		require.Len(t, oldest, 1)
		var first int
		for i := range oldest {
			first = i
		}
		minority := []int{first, (first + 1) % 5}
		slices.Sort(minority)
		majority := slices.DeleteFunc([]int{0, 1, 2, 3, 4}, func(i int) bool {
			return slices.Contains(minority, i)
		})
		split(c, minority, majority)
		within(t, c, time.Second, "only the majority", openAt(c, majority...))
		c.Advance(rule(c).Decided())
		require.Contains(t, majority, index(c, holder(t, c, first)))
		for range 300 {
			c.Advance(time.Second)
			require.Equal(t, majority, hosts(c))
		}
		meet(c)
		within(t, c, time.Minute, "open everywhere", func() bool {
			for _, m := range c.Members() {
				select {
				case <-membership.Attach(m.System).Removed():
					m.Restart()
				default:
				}
			}
			return len(hosts(c)) == 5
		})
	})
}

func index(c *testkit.Cluster, id string) int {
	for _, m := range c.Members() {
		if m.ID == id {
			return m.Index
		}
	}
	return -1
}

// TestArbiter_AnotherLeaseStore starts three members, of which the youngest has a store of its own:
// it hosts nothing, says why, and gives up.
func TestArbiter_AnotherLeaseStore(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		members := c.Members()
		slices.SortFunc(members, func(a, b *testkit.Member) int { return a.Index - b.Index })
		oldest, ok := membership.Attach(members[0].System).View().Oldest("")
		require.True(t, ok)
		wrong := (index(c, oldest.ID) + 1) % 3
		own, err := coordination.Open(memory.New(), coordination.Config{Owner: "wrong"})
		require.NoError(t, err)
		var mu sync.Mutex
		var gaveUp error
		testkit.Each(c, func(m *testkit.Member) (struct{}, error) {
			session := m.Session
			if m.Index == wrong {
				session = own
			}
			stop := startArbiter(m.System, session, "test", arbiter.Config{Members: 2}, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				gaveUp = err
			}, new(atomic.Int64))
			_, err := lifecycle.OnStop(m.System, lifecycle.Leases, "majority", stop)
			return struct{}{}, err
		})
		right := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == wrong })
		within(t, c, 5*time.Second, "open at the others", openAt(c, right...))
		require.ErrorContains(t, lifecycle.Of(c.Member(wrong).System).Check(), "different stores")
		c.Advance(2 * own.TTL())
		require.Equal(t, right, hosts(c))
		mu.Lock()
		require.ErrorIs(t, gaveUp, ErrInvalid)
		require.ErrorContains(t, gaveUp, c.Member(index(c, oldest.ID)).System.Address())
		mu.Unlock()
		require.NoError(t, own.Close(t.Context()))
	})
}

// TestArbiter_AnOrderlyLeaveIsNoLoss stops members one after the other, and checks that the
// remaining ones are never shut.
func TestArbiter_AnOrderlyLeaveIsNoLoss(t *testing.T) {
	testkit.Run(t, 4, func(t *testing.T, c *testkit.Cluster) {
		arbitrate(c, 1)
		within(t, c, 20*time.Second, "open everywhere", openAt(c, 0, 1, 2, 3))
		for i := range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			require.NoError(t, c.Member(i).Leave(ctx))
			cancel()
			for range 200 {
				c.Advance(100 * time.Millisecond)
				require.Len(t, hosts(c), 3-i)
			}
		}
		require.Equal(t, c.Member(3).ID, holder(t, c, 3))
	})
}

// TestArbiter_NothingStopsBeforeLeasesEnd also checks that the majority never stops.
// Seen in pekko 578, pekko management 543, akka.net management 1251, 3397.
func TestArbiter_NothingStopsBeforeLeasesEnd(t *testing.T) {
	testkit.Run(t, 4, func(t *testing.T, c *testkit.Cluster) {
		arbitrate(c, 3)
		within(t, c, 20*time.Second, "open everywhere", openAt(c, 0, 1, 2, 3))
		for _, m := range c.Members() {
			m.Store.Set(testkit.StoreFaults{Away: true})
		}
		c.Advance(time.Minute)
		require.Len(t, hosts(c), 4, "nobody is missing: the store is not needed")
		split(c, []int{0, 1, 2}, []int{3})
		for range c.Member(0).Session.TTL() / time.Second {
			require.Len(t, hosts(c), 4)
			c.Advance(time.Second)
		}
		within(t, c, 5*time.Second, "only the majority", openAt(c, 0, 1, 2))
		for _, m := range c.Members() {
			m.Store.Set(testkit.StoreFaults{})
		}
		for range 100 {
			c.Advance(time.Second)
			require.Equal(t, []int{0, 1, 2}, hosts(c))
		}
	})
}

// TestArbiter_MinorityHostsIfMajorityLacksTheStore also checks that it steps down
// when the majority reaches the store again.
func TestArbiter_MinorityHostsIfMajorityLacksTheStore(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		arbitrate(c, 2)
		within(t, c, 20*time.Second, "open everywhere", openAt(c, 0, 1, 2))
		for _, i := range []int{0, 1} {
			c.Member(i).Store.Set(testkit.StoreFaults{Away: true})
		}
		split(c, []int{0, 1}, []int{2})
		within(t, c, 2*c.Member(2).Session.TTL(), "stopped", openAt(c, 0, 1))
		within(t, c, 2*c.Member(2).Session.TTL(), "the minority too", openAt(c, 0, 1, 2))
		require.NoError(t, lifecycle.Of(c.Member(2).System).Check())
		says := fmt.Sprint(lifecycle.Of(c.Member(0).System).Check(),
			lifecycle.Of(c.Member(1).System).Check())
		require.Contains(t, says, errStoreAway.Error()) // of the one that has had a lease
		for _, i := range []int{0, 1} {
			c.Member(i).Store.Set(testkit.StoreFaults{})
		}
		within(t, c, 10*time.Second, "only the majority", openAt(c, 0, 1))
	})
}

// TestArbiter_OneOfTwoHalvesHosts also checks that the other one does not.
func TestArbiter_OneOfTwoHalvesHosts(t *testing.T) {
	testkit.Run(t, 4, func(t *testing.T, c *testkit.Cluster) {
		arbitrate(c, 1)
		within(t, c, 20*time.Second, "open everywhere", openAt(c, 0, 1, 2, 3))
		split(c, []int{0, 1}, []int{2, 3})
		half := func() bool {
			return slices.Equal(hosts(c), []int{0, 1}) || slices.Equal(hosts(c), []int{2, 3})
		}
		within(t, c, 5*time.Second, "one half", half)
		for range 100 {
			c.Advance(time.Second)
			require.True(t, half())
		}
	})
}

func TestVerdict_IsReadAsWritten(t *testing.T) {
	for _, v := range []arbiter.Verdict{{Kind: arbiter.Ours, Members: 5}, {Kind: arbiter.Yielding},
		{Kind: arbiter.Whole, Members: 10_000, Session: "0123456789abcdef"}} {
		got, ok := decodeVerdict(encodeVerdict(v))
		require.True(t, ok)
		require.Equal(t, v, got)
	}
	for _, data := range [][]byte{nil, {}, {1}, {0, 1}, {99, 1}, {1, 0xff},
		{1, 0xff, 0xff, 0xff, 0xff, 0x7f}} {
		_, ok := decodeVerdict(data)
		require.False(t, ok, "%v", data)
	}
}

func FuzzVerdict(f *testing.F) {
	f.Add([]byte{4, 5})
	f.Fuzz(func(t *testing.T, data []byte) {
		if v, ok := decodeVerdict(data); ok && !v.Valid() {
			t.Errorf("%v", v)
		}
	})
}

// TestGuard_ShutsBeforeTheLeaseIsLost also checks that the gate opens when renewals succeed again.
func TestGuard_ShutsBeforeTheLeaseIsLost(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		m := c.Member(0)
		m.Store.Set(testkit.StoreFaults{Away: true}) // else it may be open at once
		stop, err := startGuard(m.System, m.Session, "guard/0")
		require.NoError(t, err)
		require.False(t, gate.Of(m.System).State().Open)
		m.Store.Set(testkit.StoreFaults{})
		within(t, c, 10*time.Second, "held", openAt(c, 0, 1))
		m.Store.Set(testkit.StoreFaults{Away: true})
		took := within(t, c, 30*time.Second, "shut", openAt(c, 1))
		require.Less(t, took, 5500*time.Millisecond, "with a third of the TTL left, or more")
		m.Store.Set(testkit.StoreFaults{})
		within(t, c, 5*time.Second, "renewed", openAt(c, 0, 1))
		m.Store.Set(testkit.StoreFaults{Away: true})
		c.Advance(time.Minute)
		require.Equal(t, []int{1}, hosts(c))
		require.Contains(t, gate.Of(m.System).State().Why[0], "guard lease")
		m.Store.Set(testkit.StoreFaults{})
		within(t, c, 10*time.Second, "held again", openAt(c, 0, 1))
		require.NoError(t, stop(t.Context()))
		require.Equal(t, []int{1}, hosts(c))
		g, err := c.Member(1).Session.Lease("guard/0").TryAcquire(t.Context())
		require.NoError(t, err, "released")
		require.NoError(t, g.Release(t.Context()))
	})
}

func TestGuard_AnotherHolderKeepsTheGateShut(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		g, err := c.Member(1).Session.Lease("guard/0").TryAcquire(t.Context())
		require.NoError(t, err)
		m := c.Member(0)
		stop, err := startGuard(m.System, m.Session, "guard/0")
		require.NoError(t, err)
		c.Advance(time.Minute)
		require.Equal(t, []int{1}, hosts(c))
		require.NoError(t, g.Release(t.Context()))
		within(t, c, 10*time.Second, "held", openAt(c, 0, 1))
		require.NoError(t, m.Session.Close(t.Context()))
		within(t, c, 10*time.Second, "closed", openAt(c, 1))
		require.NoError(t, stop(t.Context()))
	})
}
