package membership_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/simnet"
)

// detecting returns a cluster whose members detect unreachable members by themselves.
func detecting(members int) simnet.Config {
	return simnet.Config{Members: members, Setup: attach, Options: network,
		Provider: &simnet.Provider{Round: 500 * time.Millisecond, Silence: 2 * time.Second}}
}

func service(m *simnet.Member) *membership.Service { return membership.Attach(m.System) }

func TestService_TellsOfLostMembersAndOfTheSplit(t *testing.T) {
	simnet.Run(t, detecting(3), func(t *testing.T, c *simnet.Cluster) {
		a, alone := c.Member(0), c.Member(2)
		pass(20 * time.Second)
		require.Empty(t, service(a).Lost())
		c.Net.Partition([]string{a.Address, c.Member(1).Address}, []string{alone.Address})
		pass(10 * time.Second)
		require.Equal(t, []string{alone.Address}, service(a).Lost())
		require.Equal(t, []string{a.Address, c.Member(1).Address}, service(alone).Lost())
		others, _ := service(alone).Split()
		require.Empty(t, others, "nobody was heard of")
		require.NotZero(t, service(alone).Stats().Asked)

		c.Net.Heal()
		healed := time.Now()
		pass(10 * time.Second)
		require.ErrorIs(t, service(alone).Cause(), membership.ErrSteppedDown)
		require.EqualValues(t, 1, service(alone).Stats().PermitsTaken)
		require.EqualValues(t, 1, service(a).Stats().PermitsGiven+service(
			c.Member(1)).Stats().PermitsGiven)
		require.EqualValues(t, 1, service(a).Stats().Splits)
		others, since := service(alone).Split()
		require.Len(t, others, 2)
		require.Less(t, since.Sub(healed), 3*time.Second)

		// The process of the crashed member restarts.
		next := c.Start(alone.Address)
		c.List([]*simnet.Member{next}, []*simnet.Member{next})
		pass(10 * time.Second)
		agree(t, c.Live())
		for _, m := range c.Live() {
			require.Empty(t, service(m).Lost())
			others, _ := service(m).Split()
			require.Empty(t, others)
		}
	})
}

func TestService_TheArbiterDecides(t *testing.T) {
	simnet.Run(t, detecting(3), func(t *testing.T, c *simnet.Cluster) {
		pass(20 * time.Second)
		a, b, alone := c.Member(0), c.Member(1), c.Member(2)
		c.Net.Partition([]string{a.Address, b.Address}, []string{alone.Address})
		pass(10 * time.Second)
		service(alone).SetArbiter(true)
		c.Net.Heal()
		pass(10 * time.Second)
		require.False(t, removed(alone))
		require.True(t, removed(a) != removed(b), "one at a time")
	})
}

func TestService_PatienceIsTuned(t *testing.T) {
	cfg := detecting(2)
	cfg.Setup = func(m *simnet.Member) {
		service(m).Tune(membership.Tuning{Patience: time.Minute})
		service(m).SetArbiter(m.Index == 0) // even before it is listed
	}
	simnet.Run(t, cfg, func(t *testing.T, c *simnet.Cluster) {
		pass(20 * time.Second)
		c.Net.Cut(c.Member(0).Address, c.Member(1).Address)
		pass(10 * time.Second)
		c.Net.Heal()
		pass(55 * time.Second)
		require.False(t, removed(c.Member(1)))
		pass(10 * time.Second)
		require.True(t, removed(c.Member(1)))
		require.False(t, removed(c.Member(0)))
	})
}

// A member that leaves gracefully is not lost, even if its provider reports it late.
func TestService_WhoLeavesIsNotLost(t *testing.T) {
	simnet.Run(t, detecting(3), func(t *testing.T, c *simnet.Cluster) {
		pass(20 * time.Second)
		m := c.Member(2)
		service(m).Stop()
		<-service(m).Stopped()
		pass(time.Second)
		c.Crash(m)
		pass(10 * time.Second)
		require.Len(t, view(c.Member(0)).Members, 2)
		require.Empty(t, service(c.Member(0)).Lost())
		asked := service(c.Member(0)).Stats().Asked
		pass(time.Hour)
		require.Equal(t, asked, service(c.Member(0)).Stats().Asked)
	})
}
