package distributeddata_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/internal/simnet"
)

func (c *cluster) forget(i int, member string, opts ...distributeddata.ForgetOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return c.at(i).Forget(ctx, member, opts...)
}

// lose crashes members, and waits until the others no longer list them.
func (c *cluster) lose(gone ...int) {
	var dead []*simnet.Member
	for _, i := range gone {
		c.Crash(c.Member(i))
		dead = append(dead, c.Member(i))
	}
	c.Unlist(c.Live(), dead)
	time.Sleep(10 * time.Second)
}

func TestForget_AMajorityGoesOnWithoutAMember(t *testing.T) {
	run(t, 4, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		require.NoError(t, c.add(0, "x", distributeddata.Majority))
		c.lose(3)
		require.Equal(t, 4, c.at(0).Status().Counted)
		require.Equal(t, []string{c.Member(3).Address}, c.at(0).Status().Missing)
		require.NoError(t, c.forget(0, c.Member(3).Address))
		time.Sleep(3 * time.Second)
		require.Equal(t, 3, c.at(1).Status().Counted)
		require.Empty(t, c.at(1).Status().Missing)
		require.NoError(t, c.add(1, "y", distributeddata.All), "All is all that are counted")
	})
}

func TestForget_RefusesWhatItMust(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		for name, why := range map[string]string{
			c.Member(0).Address: "it is this member",
			"nobody":            "it is not counted; the counted members are ",
			c.Member(1).Address: "it answers",
		} {
			for _, opts := range [][]distributeddata.ForgetOption{nil, {distributeddata.Force}} {
				err := c.forget(0, name, opts...)
				require.ErrorIs(t, err, distributeddata.ErrInvalid)
				require.ErrorContains(t, err, why)
			}
		}
		c.lose(1, 2)
		err := c.forget(0, c.Member(2).Address)
		var q *distributeddata.QuorumError
		require.True(t, errors.As(err, &q), "%v", err)
		require.Equal(t, 3, c.at(0).Status().Counted, "nothing has changed")
		require.NoError(t, c.forget(0, c.Member(1).Address, distributeddata.Force))
		require.NoError(t, c.forget(0, c.Member(2).Address, distributeddata.Force))
		require.Equal(t, 2, c.at(0).Status().Counted, "as many as MinMembers")
	})
}

// A member that vanishes counts until ForgetAfter has passed, and then no longer.
func TestForgetAfter_ALongAbsenceIsForgotten(t *testing.T) {
	run(t, 4, distributeddata.Config{MinMembers: 2, ForgetAfter: time.Minute}, func(c *cluster) {
		c.lose(3)
		time.Sleep(30 * time.Second)
		require.Equal(t, 4, c.at(0).Status().Counted)
		time.Sleep(time.Minute)
		for i := range 3 {
			require.Equal(t, 3, c.at(i).Status().Counted)
		}
	})
}

// A member that stops in order is no longer counted when Close returns.
func TestClose_TheOthersCountWithoutTheMember(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		require.NoError(t, c.add(2, "x", distributeddata.Majority))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, c.at(2).Close(ctx))
		time.Sleep(time.Second)
		require.Equal(t, 2, c.at(0).Status().Counted)
		require.Equal(t, 2, c.at(1).Status().Counted)
	})
}

func TestMinMembers_WithoutItOnlyLocalWorks(t *testing.T) {
	(&cluster{t: t, unready: true}).run(1, func(c *cluster) {
		t, dd := c.t, c.at(0)
		defer func() { require.NoError(t, dd.Close(context.Background())) }()
		time.Sleep(3 * time.Second)
		_, err := cart.Update(t.Context(), dd, addTo("x"), local)
		require.NoError(t, err)
		for _, at := range []distributeddata.Consistency{distributeddata.Majority,
			distributeddata.All, distributeddata.Linearizable, distributeddata.Nodes(2)} {
			_, err = cart.Update(t.Context(), dd, addTo("y"), at)
			require.ErrorIs(t, err, distributeddata.ErrInvalid)
			require.ErrorContains(t, err, "MinMembers is not set")
			_, err = cart.Get(t.Context(), dd, at)
			require.ErrorContains(t, err, "MinMembers is not set")
		}
		v, err := cart.Get(t.Context(), dd)
		require.NoError(t, err)
		require.False(t, v.Contains("y"), "nothing was done")
		require.ErrorContains(t, dd.Ready(t.Context()), "MinMembers is not set")
	})
}

// What the process states for its cluster counts for replicators of all members that have no number
// of their own. A replicator of a role has other members, so it needs its own.
func TestMinMembers_IsThatOfTheProcess(t *testing.T) {
	configs := []distributeddata.Config{
		{Name: "derived"}, {Name: "own", MinMembers: 3}, {Name: "local", MinMembers: -1},
		{Name: "role", Role: "front"},
	}
	var all [][]*distributeddata.Replicator // by member
	simnet.Run(t, simnet.Config{Options: simnet.Options{Seed: 1}, Members: 2,
		Setup: func(m *simnet.Member) {
			incarnations := lifecycle.NewIncarnations()
			incarnations.MinMembers = 2
			incarnations.Attach(m.System)
			var mine []*distributeddata.Replicator
			for _, cfg := range configs {
				dd, err := distributeddata.New(m.System, cfg)
				require.NoError(t, err)
				mine = append(mine, dd)
			}
			all = append(all, mine)
		}}, func(t *testing.T, _ *simnet.Cluster) {
		defer func() {
			for _, mine := range all {
				for _, dd := range mine {
					_ = dd.Close(context.Background())
				}
			}
		}()
		derived, own, local, role := all[0][0], all[0][1], all[0][2], all[0][3]
		require.NoError(t, derived.Ready(t.Context()))
		require.Equal(t, 2, derived.Status().Counted)
		_, err := cart.Update(t.Context(), derived, addTo("x"), distributeddata.Majority)
		require.NoError(t, err)
		_, err = cart.Update(t.Context(), own, addTo("x"), distributeddata.Majority)
		require.ErrorIs(t, err, distributeddata.ErrQuorum)
		for _, dd := range []*distributeddata.Replicator{local, role} {
			_, err := cart.Update(t.Context(), dd, addTo("x"), distributeddata.Majority)
			require.ErrorContains(t, err, "MinMembers is not set")
		}
	})
}

func TestConfig_NamesOfMembersAreBounded(t *testing.T) {
	for name, why := range map[string]string{
		strings.Repeat("x", 1<<20): "name has 1048576 bytes, over the limit of 256",
		"\xff":                     "is not UTF-8",
	} {
		err := settings.Check(distributeddata.Config{MinMembers: 1, Member: name})
		require.ErrorIs(t, err, distributeddata.ErrInvalid)
		require.ErrorContains(t, err, why)
	}
}

// Close of a member that is cut off cannot reach the others' agreement: it says so.
func TestClose_OfAMemberThatIsCutOffSaysThatItIsCounted(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		require.NoError(t, c.add(2, "x", distributeddata.All))
		time.Sleep(3 * time.Second)
		c.split([]int{2}, []int{0, 1})
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := c.at(2).Close(ctx)
		require.ErrorIs(t, err, distributeddata.ErrQuorum)
		require.ErrorContains(t, err, "members counted")
		time.Sleep(time.Second)
		require.Equal(t, 3, c.at(0).Status().Counted)
	})
}

// A member that is not ready yet and has nothing of its own stops in order, although the others
// cannot agree to count without it.
func TestClose_OfAMemberThatIsNotReadyYet(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		require.NoError(t, c.add(2, "x", distributeddata.All))
		c.lose(1)
		again := c.Restart(c.Member(2))
		time.Sleep(3 * time.Second)
		wrote := c.Restart(c.Member(0))
		c.Net.Partition([]string{wrote.Address}, []string{again.Address})
		time.Sleep(time.Second)
		cut, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		require.NoError(t, c.add(wrote.Index, "mine", distributeddata.Local))
		require.ErrorContains(t, c.dd[wrote].Close(cut), "may be lost")
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		early, end := context.WithTimeout(ctx, time.Millisecond)
		defer end()
		require.Error(t, c.dd[again].Ready(early))
		require.NoError(t, c.dd[again].Close(ctx))
	})
}
