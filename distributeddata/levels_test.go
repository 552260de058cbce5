package distributeddata_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata"
)

// reached makes a write and a read at a level with away of n members out of reach, and returns
// their errors.
func (c *cluster) reached(level distributeddata.Consistency, away int) (write, read error) {
	n := len(c.Live())
	here, there := addresses(c, 0), []string(nil)
	for i := 1; i < n; i++ {
		if i < n-away {
			here = append(here, c.Member(i).Address)
		} else {
			there = append(there, c.Member(i).Address)
		}
	}
	c.Net.Heal()
	time.Sleep(3 * time.Second)
	if away > 0 {
		c.Net.Partition(here, there)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_, read = visits.Get(ctx, c.at(0), level)
	return c.count(0, 1, level), read
}

// Each level is reached with as many members as it needs, and not with one less. The numbers are
// those of the originals (distributed-data.md 1.3), for writes and for reads.
func TestLevels_AtTheirEdges(t *testing.T) {
	majority := distributeddata.Majority
	for _, e := range []struct {
		level distributeddata.Consistency
		n     int
		need  int
	}{
		{local, 3, 1},
		{distributeddata.Nodes(2), 3, 2},
		{distributeddata.Nodes(3), 3, 3},
		{distributeddata.Nodes(2), 5, 2},
		{distributeddata.Nodes(5), 5, 5},
		{majority, 1, 1},
		{majority, 2, 2},
		{majority, 3, 2},
		{majority, 4, 3},
		{majority, 5, 3},
		{majority.Plus(1), 3, 3},
		{majority.Plus(1), 5, 4},
		{majority.Plus(9), 5, 5},
		{majority.AtLeast(2), 5, 3},
		{majority.AtLeast(4), 5, 4},
		{majority.AtLeast(9), 5, 5},
		{majority.Plus(1).AtLeast(2), 5, 4},
		{majority.AtLeast(5).Plus(1), 5, 5},
		{distributeddata.Linearizable, 5, 3},
		{distributeddata.All, 5, 5},
	} {
		t.Run(fmt.Sprintf("%v of %d", e.level, e.n), func(t *testing.T) {
			run(t, e.n, distributeddata.Config{MinMembers: e.n}, func(c *cluster) {
				require.NoError(t, c.count(0, 1, distributeddata.All))
				write, read := c.reached(e.level, e.n-e.need)
				require.NoError(t, write)
				require.NoError(t, read)
				if e.need == 1 {
					return
				}
				write, read = c.reached(e.level, e.n-e.need+1)
				for _, err := range []error{write, read} {
					q, ok := errors.AsType[*distributeddata.QuorumError](err)
					require.True(t, ok, err)
					require.Equal(t, []int{e.need, e.need - 1, e.n},
						[]int{q.Needed, q.Answered, q.Counted})
					require.Len(t, q.Missing, e.n-e.need+1)
					for i := e.need - 1; i < e.n; i++ {
						require.Contains(t, q.Missing, c.Member(i).Address)
					}
				}
			})
		})
	}
}

// A level that needs more members than there are fails at once, whatever is out of reach; the write
// stays.
func TestLevels_ThatCannotBeReachedFailAtOnce(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		for i, level := range []distributeddata.Consistency{distributeddata.Nodes(4),
			distributeddata.Nodes(65535)} {
			begin := time.Now()
			require.ErrorIs(t, c.count(0, 1, level), distributeddata.ErrQuorum)
			_, err := visits.Get(context.Background(), c.at(0), level)
			require.ErrorIs(t, err, distributeddata.ErrQuorum)
			require.Zero(t, time.Since(begin))
			require.EqualValues(t, i+1, c.total(0))
		}
	})
}

// The error names members that membership has dropped.
func TestLevels_NameWhoIsMissingAfterTheyWereDropped(t *testing.T) {
	run(t, 5, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		gone := addresses(c, 2, 3, 4)
		live := c.Live()
		c.Net.Partition(addresses(c, 0, 1), gone)
		c.Unlist(live[:2], live[2:])
		time.Sleep(5 * time.Second)
		for _, level := range []distributeddata.Consistency{distributeddata.Majority,
			distributeddata.All, distributeddata.Nodes(3)} {
			q, ok := errors.AsType[*distributeddata.QuorumError](c.count(0, 1, level))
			require.True(t, ok, level)
			require.ElementsMatch(t, gone, q.Missing, level)
			require.Equal(t, []int{2, 2}, []int{q.Answered, q.Seen}, level)
		}
	})
}

// Plus and AtLeast change Majority only. Before, Nodes(3).AtLeast(1) was one node.
func TestLevels_PlusAndAtLeastAreOfMajority(t *testing.T) {
	for _, level := range []distributeddata.Consistency{
		local, distributeddata.Nodes(3), distributeddata.All,
		distributeddata.Linearizable,
	} {
		require.Equal(t, level, level.AtLeast(1).AtLeast(7).Plus(2))
	}
	require.Equal(t, distributeddata.Majority, distributeddata.Majority.Plus(-1).AtLeast(-1))
	require.Equal(t, "majority+2 of at least 5", distributeddata.Majority.AtLeast(9).Plus(
		2).AtLeast(5).String())
	require.Equal(t, distributeddata.Nodes(65535), distributeddata.Nodes(1<<30))
}
