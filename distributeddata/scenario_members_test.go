package distributeddata_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
)

// akka 28856: a majority read missed the last majority write after several members had changed.
func TestScenario_MajorityReadAfterMembersChanged(t *testing.T) {
	run(t, 5, distributeddata.Config{MinMembers: 5}, func(c *cluster) {
		members := []int{0, 1, 2, 3, 4}
		c.Net.Partition(addresses(c, 0, 1, 2), addresses(c, 3, 4))
		require.NoError(t, c.add(0, "kept", distributeddata.Majority)) // 0, 1 and 2 have it
		c.Net.Heal()
		// one that missed it stays behind
		c.Net.Partition(addresses(c, 3), addresses(c, 0, 1, 2, 4))
		for _, k := range []int{0, 1, 2} { // and all that had it are replaced, one by one
			m := c.Restart(c.Member(members[k]))
			members[k] = m.Index
			c.ready(m)
		}
		c.Net.Heal()
		for _, i := range members {
			require.Equal(t, []string{"kept"}, c.elements(i, distributeddata.Majority), "at %d", i)
		}
	})
}

// akka 30327, akka.net 8547: members that leave stalled the writes of others, and their own were
// dropped.
// Seen in akka 30327, 30328, akka.net 8547.
func TestScenario_ALeavingMemberStallsNobodyAndLosesNothing(t *testing.T) {
	run(t, 4, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		leaver := c.Member(3)
		require.NoError(t, c.add(3, "last words"))
		closed := make(chan error, 1)
		go func() { closed <- c.dd[leaver].Close(context.Background()) }()
		begin := time.Now()
		for i := range 20 {
			require.NoError(t, c.add(i%3, fmt.Sprint("meanwhile ", i), distributeddata.Majority))
		}
		require.NoError(t, <-closed)
		require.Less(t, time.Since(begin), time.Second, "in virtual time")
		c.Leave(leaver)
		require.Contains(t, c.elements(0, distributeddata.Majority), "last words")
	})
}

// akka 19917, akka.net 7573: members without a replicator counted, and nothing replicated.
func TestScenario_MembersWithoutTheRoleDoNotCount(t *testing.T) {
	dd := map[int]*distributeddata.Replicator{}
	simnet.Run(t, simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: 5 * time.Millisecond}, Members: 6,
		Roles: func(i int) []string {
			if i < 3 {
				return []string{"data"}
			}
			return nil
		},
		Setup: func(m *simnet.Member) {
			if m.Index < 3 {
				r, err := distributeddata.New(m.System, distributeddata.Config{
					Role: "data", MinMembers: 3})
				require.NoError(t, err)
				dd[m.Index] = r
			}
		},
	}, func(t *testing.T, sc *simnet.Cluster) {
		for i := range 3 {
			require.NoError(t, dd[i].Ready(context.Background()))
		}
		_, err := cart.Update(context.Background(), dd[0], func(w *crdt.Writer, v *items) error {
			v.Add(w, "x")
			return nil
		}, distributeddata.All)
		require.NoError(t, err)
		require.Equal(t, 3, dd[0].Status().Members)
		for i := range 3 {
			require.NoError(t, dd[i].Close(context.Background()))
			sc.Leave(sc.Member(i))
		}
	})
}

// akka 23683, 25699, and GoAkt 94c8740c: removed or deleted data came back with a member that had
// missed the removal.
func TestScenario_AReturnerDoesNotBringBackWhatWasRemoved(t *testing.T) {
	run(t, 5, distributeddata.Config{MinMembers: 5, HeartbeatInterval: time.Minute},
		func(c *cluster) {
			require.NoError(t, c.add(4, "removed", distributeddata.All))
			require.NoError(t, c.count(4, 3, distributeddata.All))
			c.Net.Partition(addresses(c, 0, 1, 2, 3), addresses(c, 4))
			require.ErrorIs(t, visits.Delete(context.Background(), c.at(0), distributeddata.All),
				distributeddata.ErrQuorum, "one is away, and it says so")
			require.NoError(t, c.removeFrom(1, "removed"))
			time.Sleep(2 * time.Hour)
			c.Net.Heal()
			time.Sleep(5 * time.Minute)
			for i := range 5 {
				require.Empty(t, c.elements(i))
				_, err := visits.Get(context.Background(), c.at(i))
				require.ErrorIs(t, err, distributeddata.ErrNotFound, "at %d", i)
			}
		})
}

// GoAkt 94c8740c: two members that read at a majority at the same moment waited five seconds for
// each other.
func TestScenario_MajorityReadsAtOnceDoNotWaitForEachOther(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		require.NoError(t, c.add(0, "x", distributeddata.All))
		begin := time.Now()
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				for range 6 {
					if _, err := cart.Get(context.Background(), c.at(i),
						distributeddata.Majority); err != nil {
						t.Errorf("member %d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()
		require.Less(t, time.Since(begin), 6*50*time.Millisecond,
			"six round trips, in virtual time")
	})
}

// GoAkt 94c8740c: with one hanging peer, all reads and writes of a member hung, plain updates
// between the others did not arrive, and the write to all returned without an error.
func TestScenario_OneHangingMemberHarmsNobodyElse(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		c.Freeze(c.Member(2))
		result := make(chan error, 1)
		go func() { result <- c.add(0, "to all", distributeddata.All) }()
		time.Sleep(100 * time.Millisecond) // it waits
		begin := time.Now()
		require.Equal(t, []string{"to all"}, c.elements(0))
		require.NoError(t, c.count(0, 1, distributeddata.Majority))
		require.NoError(t, c.count(1, 1))
		time.Sleep(50 * time.Millisecond)
		require.EqualValues(t, 2, c.total(0))
		require.Less(t, time.Since(begin), 200*time.Millisecond, "in virtual time")
		require.ErrorIs(t, <-result, distributeddata.ErrQuorum)
		c.Thaw(c.Member(2))
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"to all"}, c.elements(2))
	})
}
