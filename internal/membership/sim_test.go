package membership_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/stretchr/testify/require"
)

// attach is the Setup of every test in this file.
func attach(m *simnet.Member) { membership.Attach(m.System) }

func view(m *simnet.Member) *membership.View { return membership.Attach(m.System).View() }

func removed(m *simnet.Member) bool {
	select {
	case <-membership.Attach(m.System).Removed():
		return true
	default:
		return false
	}
}

func ids(ms []membership.Member) (out []string) {
	for _, m := range ms {
		out = append(out, m.ID)
	}
	return out
}

// pass advances virtual time and waits until everything due has run.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// agree checks that all these members have the same view, with the stamps of all members.
func agree(t *testing.T, members []*simnet.Member) {
	t.Helper()
	first := view(members[0])
	require.NotNil(t, first)
	require.Len(t, first.ByAge(""), len(members), "%v", first)
	for _, m := range members {
		v := view(m)
		require.NotNil(t, v)
		require.Equal(t, first.Hash, v.Hash, "%s: %v\n%s: %v", members[0], first.Members, m,
			v.Members)
		require.Equal(t, ids(first.ByAge("")), ids(v.ByAge("")))
		self, ok := v.Find(m.ID)
		require.True(t, ok)
		require.Equal(t, self, v.Self)
	}
}

var network = simnet.Options{Latency: 2 * time.Millisecond, Jitter: 5 * time.Millisecond}

func TestLoneMemberIsOldestAtOnce(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 1, Setup: attach}, func(t *testing.T, c *simnet.Cluster) {
		synctest.Wait()
		o, ok := view(c.Member(0)).Oldest("")
		require.True(t, ok)
		require.Equal(t, c.Member(0).ID, o.ID)
		require.Zero(t, time.Since(time.UnixMilli(int64(o.Stamp>>16))))
	})
}

func TestMembersThatStartTogetherAgreeWithinARound(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 5, Setup: attach, Options: network},
		func(t *testing.T, c *simnet.Cluster) {
			pass(time.Second)
			agree(t, c.Live())
		})
}

func TestAgeIsTheOrderOfJoining(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 1, Setup: attach, Options: network},
		func(t *testing.T, c *simnet.Cluster) {
			var want []string
			for range 6 {
				pass(100 * time.Millisecond)
				c.Join()
			}
			pass(time.Second)
			agree(t, c.Live())
			for _, m := range c.Live() {
				want = append(want, m.ID)
			}
			require.Equal(t, want, ids(view(c.Member(3)).ByAge("")))
		})
}

func TestMemberAloneStampsItselfAfterTheWait(t *testing.T) {
	simnet.Run(t, simnet.Config{Setup: attach, Options: network},
		func(t *testing.T, c *simnet.Cluster) {
			c.Join()
			pass(time.Second)
			c.Net.Cut("node-0:1", "node-1:1")
			b := c.Join()
			pass(1900 * time.Millisecond)
			require.Zero(t, view(b).Self.Stamp)
			_, ok := view(b).Oldest("")
			require.False(t, ok, "nobody whose stamp is known")
			pass(200 * time.Millisecond)
			require.NotZero(t, view(b).Self.Stamp)
			c.Net.Heal()
			pass(20 * time.Second)
			agree(t, c.Live())
		})
}

// Some providers list a new member alone before they list the others. Its clock may lag.
func TestMemberListedAloneIsNotOlderThanItsCluster(t *testing.T) {
	simnet.Run(t, simnet.Config{Setup: attach, Options: network},
		func(t *testing.T, c *simnet.Cluster) {
			m := c.Start("new:1")
			old := c.Start("old:1")
			c.List([]*simnet.Member{m}, []*simnet.Member{m})
			pass(time.Millisecond)
			c.List([]*simnet.Member{old}, []*simnet.Member{old})
			pass(1500 * time.Millisecond) // by now m has chosen the older stamp
			o, _ := view(m).Oldest("")
			require.Equal(t, m.ID, o.ID)
			pass(400 * time.Millisecond)
			// It is too late to change old's stamp, but not m's, which no other member knows.
			membershipTold(t, c, old)
			c.List(c.Live(), c.Live())
			pass(5 * time.Second)
			agree(t, []*simnet.Member{m, old})
			o, _ = view(m).Oldest("")
			require.Equal(t, old.ID, o.ID)
		})
}

// membershipTold makes m send its stamp to a third member, which then leaves.
func membershipTold(t *testing.T, c *simnet.Cluster, m *simnet.Member) {
	t.Helper()
	third := c.Start("third:1")
	c.List([]*simnet.Member{third, m}, []*simnet.Member{third, m})
	pass(50 * time.Millisecond)
	c.Leave(third)
}

func TestRestartOnTheSameAddressIsYoungest(t *testing.T) {
	for _, beside := range []bool{false, true} {
		t.Run(fmt.Sprintf("beside=%v", beside), func(t *testing.T) {
			simnet.Run(t, simnet.Config{Members: 3, Setup: attach, Options: network},
				func(t *testing.T, c *simnet.Cluster) {
					pass(time.Second)
					old, _ := view(c.Member(0)).Oldest("")
					victim := c.Live()[slices.IndexFunc(c.Live(), func(m *simnet.Member) bool {
						return m.ID == old.ID
					})]
					restart := c.Restart
					if beside {
						restart = c.RestartBeside
					}
					next := restart(victim)
					pass(3 * time.Second)
					agree(t, c.Live()) // also while the old one is still listed
					for _, m := range c.Live() {
						age := view(m).ByAge("")
						require.Equal(t, next.ID, age[len(age)-1].ID)
						at, ok := view(m).FindAddress(next.Address)
						require.True(t, ok)
						require.Equal(t, next.ID, at.ID)
					}
					c.Unlist(c.Live(), []*simnet.Member{victim})
					pass(time.Second)
					agree(t, c.Live())
					for _, m := range c.Live() {
						require.False(t, removed(m))
					}
				})
		})
	}
}

func TestRolesComeFromKinds(t *testing.T) {
	cfg := simnet.Config{Members: 3, Setup: attach, Options: network, Roles: func(i int) []string {
		return [][]string{{"web"}, {"db", "web"}, nil}[i]
	}}
	simnet.Run(t, cfg, func(t *testing.T, c *simnet.Cluster) {
		pass(time.Second)
		v := view(c.Member(2))
		require.Len(t, v.ByAge("web"), 2)
		require.Equal(t, []string{c.Member(1).ID}, ids(v.ByAge("db")))
		_, ok := v.Oldest("none")
		require.False(t, ok)
	})
}

func TestDroppedByItsOwnProvider(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 3, Setup: attach, Options: network},
		func(t *testing.T, c *simnet.Cluster) {
			pass(time.Second)
			c.Unlist([]*simnet.Member{c.Member(1)}, []*simnet.Member{c.Member(1)})
			synctest.Wait()
			require.True(t, removed(c.Member(1)))
			require.True(t, view(c.Member(1)).Removed)
			c.List([]*simnet.Member{c.Member(1)}, []*simnet.Member{c.Member(1)})
			pass(time.Minute)
			require.True(t, view(c.Member(1)).Removed, "final")
			require.False(t, removed(c.Member(0)))
		})
}

// Of two members that do not both list each other exactly one has to step down: the one on the
// smaller side, or the one disowned by most; if these are equal, the younger.
func TestOneThatIsDroppedByOthers(t *testing.T) {
	for _, test := range []struct {
		members int
		by      []int // members that drop number 0
		gone    int
		cause   error
	}{
		{2, []int{1}, 0, membership.ErrExpelled},
		{3, []int{1}, 1, membership.ErrSteppedDown},
		{3, []int{1, 2}, 0, membership.ErrExpelled},
		{5, []int{1, 2}, 0, membership.ErrSteppedDown},
		{5, []int{1, 2, 3}, 0, membership.ErrExpelled},
	} {
		t.Run(fmt.Sprintf("%d of %d", len(test.by), test.members-1), func(t *testing.T) {
			cfg := simnet.Config{Members: test.members, Setup: attach, Options: network}
			simnet.Run(t, cfg, func(t *testing.T, c *simnet.Cluster) {
				pass(10 * time.Second)
				for _, i := range test.by {
					c.Unlist([]*simnet.Member{c.Member(i)}, []*simnet.Member{c.Member(0)})
				}
				pass(10 * time.Second)
				for range 2 {
					for i, m := range c.Live() {
						require.Equal(t, i == test.gone, removed(m), "member %d", i)
					}
					require.ErrorIs(t, membership.Attach(c.Member(test.gone).System).Cause(),
						test.cause)
					pass(10 * time.Minute)
				}
			})
		})
	}
}

func TestAPeerThatListsUsLaterIsNoVerdict(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2, Setup: attach, Options: network},
		func(t *testing.T, c *simnet.Cluster) {
			pass(time.Second)
			m := c.Start("late:1")
			c.List([]*simnet.Member{m}, c.Live())
			pass(15 * time.Second)
			require.False(t, removed(m))
			require.Len(t, view(m).ByAge(""), 3,
				"who is not listed hears the others' stamps all the same")
			c.List(c.Live(), []*simnet.Member{m})
			pass(10 * time.Second)
			agree(t, c.Live())
		})
}

func TestMemberNeverListedIsRemovedAfterGracePeriod(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 2, Setup: attach, Options: network},
		func(t *testing.T, c *simnet.Cluster) {
			m := c.Start("banned:1")
			c.List([]*simnet.Member{m}, c.Live())
			pass(time.Minute)
			require.True(t, removed(m))
		})
}

// TestSeededHistories runs random faults, then lets the lists agree and the network heal. At all
// times a member keeps the stamp with which it was first seen, and views with equal hash have the
// same oldest member.
func TestSeededHistories(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 5
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			opts := network
			opts.Seed = seed
			simnet.Run(t, simnet.Config{Members: 3, Setup: attach, Options: opts},
				func(t *testing.T, c *simnet.Cluster) {
					history(t, c, rand.New(rand.NewPCG(seed, 1)))
				})
		})
	}
}

func history(t *testing.T, c *simnet.Cluster, r *rand.Rand) {
	type incarnation struct {
		id string
		n  uint64
	}
	stamps := map[incarnation]uint64{}
	check := func() {
		oldest := map[uint64]string{}
		for _, m := range c.Live() {
			v := view(m)
			if v == nil {
				continue
			}
			for _, o := range v.Members {
				if k := (incarnation{o.ID, o.Incarnation}); o.Stamp != 0 {
					if was, ok := stamps[k]; ok {
						require.Equal(t, was, o.Stamp, "stamp of %s changed", o.ID)
					}
					stamps[k] = o.Stamp
				}
			}
			if o, ok := v.Oldest(""); ok {
				if was, ok := oldest[v.Hash]; ok {
					require.Equal(t, was, o.ID)
				}
				oldest[v.Hash] = o.ID
			}
		}
	}
	pick := func() *simnet.Member { l := c.Live(); return l[r.IntN(len(l))] }
	for range 25 {
		switch op := r.IntN(8); {
		case op == 0 && len(c.Live()) < 7:
			c.Join()
		case op == 1 && len(c.Live()) > 2:
			m := pick()
			c.Crash(m)
			pass(time.Duration(r.IntN(4000)) * time.Millisecond)
			c.Unlist(c.Live(), []*simnet.Member{m})
		case op == 2 && len(c.Live()) > 2:
			m := pick()
			membership.Attach(m.System).Stop()
			c.Leave(m)
		case op == 3:
			c.Restart(pick())
		case op == 4:
			m := pick()
			c.RestartBeside(m)
			pass(time.Duration(r.IntN(4000)) * time.Millisecond)
			c.Unlist(c.Live(), []*simnet.Member{m})
		case op == 5: // differing views, for less time than a verdict takes
			a, b := pick(), pick()
			if a != b {
				c.Unlist([]*simnet.Member{a}, []*simnet.Member{b})
				pass(time.Duration(r.IntN(300)) * time.Millisecond)
				c.List([]*simnet.Member{a}, []*simnet.Member{b})
			}
		case op == 6:
			c.Net.SetAll(simnet.Faults{Loss: r.Float64() / 2, Duplicate: r.Float64() / 2,
				Jitter: time.Second, Reorder: r.IntN(2) == 0})
		case op == 7:
			c.Net.Cut(pick().Address, pick().Address)
		}
		pass(time.Duration(r.IntN(3000)) * time.Millisecond)
		check()
	}
	c.Net.Heal()
	c.List(c.Live(), c.Live())
	pass(30 * time.Second)
	check()
	live := slices.DeleteFunc(c.Live(), removed)
	if len(live) == len(c.Live()) {
		agree(t, live)
	}
	// An expelled member finds out.
	if m := pick(); len(live) == len(c.Live()) && len(live) > 1 {
		c.Expel(m)
		pass(30 * time.Second)
		require.True(t, removed(m))
		for _, o := range c.Live() {
			require.Equal(t, o == m, removed(o))
		}
		check()
	}
}

// In each pair one asks and the other answers, once per interval, which is seven seconds among
// five.
func TestHellos_TwoPerPairAndInterval(t *testing.T) {
	simnet.Run(t, simnet.Config{Members: 5, Setup: attach, Options: network},
		func(t *testing.T, c *simnet.Cluster) {
			pass(time.Minute)
			before := c.Net.Stats().Sent
			pass(10 * time.Minute)
			const pairs, rounds = 10, 600 / 7.
			sent := c.Net.Stats().Sent - before
			require.InEpsilon(t, 2*pairs*rounds, sent, 0.05)
		})
}
