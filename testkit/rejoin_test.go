package testkit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/testkit"
)

// Members behave as in production: they detect unreachable members by themselves, ban them, and
// come back.
var (
	provider = testkit.Provider(500*time.Millisecond, 2*time.Second)
	rejoin   = testkit.Rejoin(time.Second)
)

// handle is a component that is the same in every incarnation.
type handle struct{ incarnations int }

func handles(c *testkit.Cluster) *testkit.PerMember[*handle] {
	return testkit.Each(c, func(m *testkit.Member) (*handle, error) {
		h, _, err := lifecycle.Handle(m.System, "handle", func() (*handle, error) {
			return &handle{}, nil
		})
		if err == nil {
			h.incarnations++
		}
		return h, err
	})
}

func TestRejoin_OneOfThreeCutOffForSixSeconds(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		hs := handles(c)
		c.Advance(20 * time.Second)
		first, handle := c.Member(2), hs.At(2)
		c.Partition([]int{0, 1}, []int{2})
		c.Advance(6 * time.Second)
		require.False(t, first.Sees(c.Member(0)))
		require.False(t, c.Member(0).Sees(first))
		require.Error(t, c.Whole())
		c.Heal()
		testkit.Eventually(t, 8*time.Second, c.Whole)
		require.Len(t, c.Members(), 3)
		require.NotSame(t, first, c.Member(2), "it is another incarnation")
		require.NotEqual(t, first.ID, c.Member(2).ID)
		require.Equal(t, first.Address, c.Member(2).Address)
		require.ErrorIs(t, membership.Attach(first.System).Cause(), membership.ErrSteppedDown)
		require.Same(t, handle, hs.At(2), "the first handle is bound to the second incarnation")
		require.Equal(t, 2, handle.incarnations)
		require.Equal(t, 1, hs.At(0).incarnations)
		c.Advance(time.Minute)
		require.NoError(t, c.Whole())
	}, provider, rejoin)
}

func TestRejoin_Fragments(t *testing.T) {
	testkit.Run(t, 5, func(t *testing.T, c *testkit.Cluster) {
		c.Advance(20 * time.Second)
		stays := []*testkit.Member{c.Member(0), c.Member(1)}
		c.Partition([]int{0, 1}, []int{2, 3}, []int{4})
		c.Advance(10 * time.Second)
		c.Heal()
		testkit.Eventually(t, 20*time.Second, c.Whole)
		same := 0
		for i, m := range stays {
			if c.Member(i) == m {
				same++
			}
		}
		require.Contains(t, []int{0, 2}, same, "one of the larger fragments stays whole")
	}, provider, rejoin)
}

func TestRejoin_AFrozenMember(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		c.Advance(20 * time.Second)
		frozen := c.Member(0)
		frozen.Suspend()
		c.Advance(6 * time.Second)
		frozen.Thaw()
		testkit.Eventually(t, 10*time.Second, c.Whole)
		require.NotSame(t, frozen, c.Member(0))
		require.ErrorIs(t, membership.Attach(frozen.System).Cause(), membership.ErrRemoved)
	}, provider, rejoin)
}

// Views that differ become equal again even if no member was cut off and no provider reports
// anything.
func TestRejoin_AfterDrops(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		c.Advance(20 * time.Second)
		c.Member(0).Drops(c.Member(1), c.Member(2))
		c.Member(1).Drops(c.Member(0))
		c.Member(2).Drops(c.Member(0))
		testkit.Eventually(t, 10*time.Second, c.Whole)
	}, rejoin)
}

func TestRejoin_CrashRestartAndEndBetweenIncarnations(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		hs := handles(c)
		c.Advance(20 * time.Second)
		end := func(i int) { // an incarnation ends, the next one begins in a second
			m := c.Member(i)
			m.Drops(m)
			c.Advance(100 * time.Millisecond)
			require.True(t, m.Gone())
			require.Error(t, c.Whole())
		}
		end(0)
		c.Member(0).Crash() // between its incarnations: no further incarnation follows
		c.Advance(time.Minute)
		require.Len(t, c.Members(), 2)
		next := c.Member(0).Restart()
		require.Equal(t, 1, hs.Of(next).incarnations, "another process")
		testkit.Eventually(t, 10*time.Second, c.Whole)

		end(1)
		next = c.Member(1).Restart() // replaces the next incarnation
		c.Advance(time.Minute)
		require.Same(t, next, c.Member(1))
		testkit.Eventually(t, 10*time.Second, c.Whole)
		require.Equal(t, 3, c.Join().Index)
		testkit.Eventually(t, 10*time.Second, c.Whole)
		require.NoError(t, c.Member(3).Leave(t.Context()))
		testkit.Eventually(t, 10*time.Second, c.Whole)
		end(2)
	}, provider, rejoin)
}

func TestProvider_NeverListsAnIDAgain(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		c.Advance(20 * time.Second)
		c.Link(0, 1).Set(testkit.Faults{Cut: true}) // one direction is enough
		c.Advance(5 * time.Second)
		a, b := c.Member(0), c.Member(1)
		require.False(t, a.Sees(b) || b.Sees(a))
		c.Heal()
		a.Lists(b)
		c.Advance(time.Second)
		require.False(t, a.Sees(b) || b.Sees(a))
		c.Advance(time.Minute)
		require.Error(t, c.Whole(), "without Rejoin who stepped down stays away")
		b.Crash()
		next := b.Restart()
		c.Advance(time.Second)
		require.True(t, next.Sees(a) && a.Sees(next))
	}, provider)
}

func TestProvider_DropsWhoCrashed(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		m := c.Member(2)
		m.Crash()
		require.True(t, c.Member(0).Sees(m))
		c.Advance(3 * time.Second)
		require.False(t, c.Member(0).Sees(m))
		require.NoError(t, c.Whole())
	}, provider)
}
