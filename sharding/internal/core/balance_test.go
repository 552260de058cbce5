package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// balanced returns a coordinator at a that has assigned four shards while c was not in the view;
// the shards have arrived.
func balanced(cfg core.Config) *story {
	s := &story{core: core.NewAllocation(cfg, 5, nil), now: time.Unix(1000, 0)}
	s.step(core.View{Self: a, Members: []core.Member{a}})
	s.hear(a, reports(5))
	s.now = s.now.Add(300 * ms)
	s.step(core.Wake{})
	s.step(core.View{Self: a, Members: []core.Member{a, b}})
	s.hear(a, reports(5, core.Tenure{Shard: 0, Token: 1}, core.Tenure{Shard: 1, Token: 1},
		core.Tenure{Shard: 2, Token: 1}, core.Tenure{Shard: 3, Token: 1}))
	s.hear(b, reports(5))
	return s
}

// S27: here shards move one at a time, and only after the view has been unchanged for a second.
func TestAllocation_MovesForBalanceAFewAtATime(t *testing.T) {
	cfg := config(4)
	cfg.Moves, cfg.Stable = 1, time.Second
	s := balanced(cfg)
	s.now = s.now.Add(300 * ms)
	require.Empty(t, homes(s.step(core.Wake{})), "b has just come")
	s.now = s.now.Add(time.Second)
	said := homes(s.step(core.Wake{}))
	require.Len(t, said, 1)
	require.Equal(t, b, said[0].Home)
	require.Equal(t, 3, said[0].Shard)
	s.now = s.now.Add(300 * ms)
	require.Empty(t, homes(s.step(core.Wake{})), "it has not arrived")
	s.hear(a, reports(5, core.Tenure{Shard: 0, Token: 1}, core.Tenure{Shard: 1, Token: 1},
		core.Tenure{Shard: 2, Token: 1}))
	s.hear(b, reports(5, core.Tenure{Shard: 3, Token: 2}))
	s.now = s.now.Add(300 * ms)
	require.Len(t, homes(s.step(core.Wake{})), 1)
	s.hear(a, reports(5, core.Tenure{Shard: 0, Token: 1}, core.Tenure{Shard: 1, Token: 1}))
	s.hear(b, reports(5, core.Tenure{Shard: 2, Token: 2}, core.Tenure{Shard: 3, Token: 2}))
	s.now = s.now.Add(300 * ms)
	require.Empty(t, homes(s.step(core.Wake{})), "two each")
}

// S27: no shards move for balance while a member leaves or does not reach the store, since they
// would move back to it later.
func TestAllocation_NoBalancingWhileAMemberCannotHost(t *testing.T) {
	cfg := config(4)
	cfg.Moves, cfg.Stable = 1, time.Second
	s := balanced(cfg)
	s.step(core.View{Self: a, Members: []core.Member{a, b, c}})
	s.hear(c, core.Report{Epoch: 5, Leaving: true})
	s.now = s.now.Add(1500 * ms)
	require.Empty(t, homes(s.step(core.Wake{})))
}

// S27b: while versions differ, shards of a member that leaves go to the newest version, and none
// moves for balance.
func TestAllocation_PrefersTheNewestVersion(t *testing.T) {
	a, b, c := core.Member{ID: "a", Address: "a:1"}, core.Member{ID: "b", Address: "b:1"},
		core.Member{ID: "c", Address: "c:1"}
	for _, rendezvous := range []bool{false, true} {
		cfg := config(8)
		cfg.Moves, cfg.Stable, cfg.Rendezvous = 8, time.Second, rendezvous
		alloc := core.NewAllocation(cfg, 5, nil)
		s := &story{core: alloc, now: time.Unix(1000, 0)}
		report := func(members ...core.Member) {
			for _, m := range members {
				var has []core.Tenure
				for n := range 8 {
					if alloc.Home(n).Home == m {
						has = append(has, core.Tenure{Shard: n, Token: 1})
					}
				}
				s.hear(m, reports(5, has...))
			}
		}
		s.step(core.View{Self: a, Members: []core.Member{a, b}})
		report(a, b)
		s.now = s.now.Add(time.Second)
		require.Len(t, homes(s.step(core.Wake{})), 8)

		newest := []core.Member{c}
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}, Newest: newest})
		report(a, b, c)
		s.now = s.now.Add(1500 * ms)
		require.Empty(t, homes(s.step(core.Wake{})), "versions differ")
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}, Newest: newest})
		s.hear(b, core.Report{Epoch: 5, Leaving: true})
		s.now = s.now.Add(300 * ms)
		said := homes(s.step(core.Wake{}))
		require.NotEmpty(t, said)
		for _, e := range said {
			require.Equal(t, c, e.Home)
		}
	}
}

// S27b: while versions differ, a home that a user has named still counts, and one that the user's
// function names does not.
func TestAllocation_FollowsUsersWhileVersionsDiffer(t *testing.T) {
	for _, function := range []bool{false, true} {
		cfg := config(1)
		cfg.Moves, cfg.Consult, cfg.Again, cfg.Answer = 1, function, time.Minute, 700*ms
		alloc := core.NewAllocation(cfg, 5, nil)
		s := tell(alloc)
		s.step(core.Overrides{Round: 1, Homes: map[int]string{0: "a"}})
		s.arrived(300*ms, 1)
		s.step(core.Overrides{Round: 1, Homes: map[int]string{0: "a"}})
		s.arrived(300*ms, 1)
		require.Equal(t, []string{"a"}, decided(alloc, 1))
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}, Newest: []core.Member{c}})
		s.now = s.now.Add(time.Minute)
		s.arrived(300*ms, 1)
		s.step(core.Overrides{Round: 2, Homes: map[int]string{0: "b"}})
		s.arrived(300*ms, 1)
		want := map[bool]string{false: "b", true: "a"}[function]
		require.Equal(t, []string{want}, decided(alloc, 1))
		s.step(core.View{Self: a, Members: []core.Member{a, b, c}})
		s.arrived(300*ms, 1)
		require.Equal(t, []string{"b"}, decided(alloc, 1), "versions are equal")
	}
}

// S26: with rendezvous hashing a member that joins gets shards of both others, and no shard moves
// between those.
func TestAllocation_RendezvousMovesOnlyToTheNewMember(t *testing.T) {
	cfg := config(64)
	cfg.Rendezvous, cfg.Moves, cfg.Stable = true, 64, time.Second
	alloc := core.NewAllocation(cfg, 5, nil)
	s := &story{core: alloc, now: time.Unix(1000, 0)}
	a, b := core.Member{ID: "a", Incarnation: 1, Address: "a:1"},
		core.Member{ID: "b", Incarnation: 1, Address: "b:1"}
	homes := func() (out []core.Member) {
		for n := range 64 {
			out = append(out, alloc.Home(n).Home)
		}
		return out
	}
	have := func(m core.Member) (tenures []core.Tenure) {
		for n, h := range homes() {
			if h == m {
				tenures = append(tenures, core.Tenure{Shard: n, Token: 1})
			}
		}
		return tenures
	}
	d := core.Member{ID: "d", Incarnation: 1, Address: "d:1"}
	s.step(core.View{Self: a, Members: []core.Member{a, b}})
	s.hear(a, reports(5))
	s.hear(b, reports(5))
	s.now = s.now.Add(time.Second)
	s.step(core.Wake{})
	before := homes()
	require.NotEmpty(t, have(a))
	require.NotEmpty(t, have(b))

	s.step(core.View{Self: a, Members: []core.Member{a, b, d}})
	for _, m := range []core.Member{a, b, d} {
		s.hear(m, reports(5, have(m)...))
	}
	s.now = s.now.Add(1100 * ms)
	s.step(core.Wake{})
	moved := 0
	for n, h := range homes() {
		if h != before[n] {
			require.Equal(t, d, h, "shard %d moves between those that stay", n)
			moved++
		}
	}
	require.Positive(t, moved)
	require.Less(t, moved, 40)

	gone := have(d)
	s.step(core.View{Self: a, Members: []core.Member{a, b}})
	s.now = s.now.Add(300 * ms)
	s.step(core.Wake{})
	require.Len(t, gone, moved)
	require.Equal(t, before, homes(), "and goes back when it leaves")
}

// S26: 30 types of 4 shards on three members, of which one joins later.
func TestAllocation_NoMemberGetsTheOddShardOfEveryType(t *testing.T) {
	cfg := config(4)
	cfg.Moves, cfg.Stable = 4, time.Second
	members := []core.Member{{ID: "a", Incarnation: 1, Address: "10.0.0.1:7001"},
		{ID: "b", Incarnation: 1, Address: "10.0.0.2:7001"},
		{ID: "c", Incarnation: 1, Address: "10.0.0.3:7001"}}
	for first, want := range map[int][3]int{3: {40, 40, 40}, 2: {45, 45, 30}} {
		shards := map[core.Member]int{}
		for typ := range 30 {
			cfg.Type = fmt.Sprint("type-", typ)
			alloc := core.NewAllocation(cfg, 5, nil)
			s := &story{core: alloc, now: time.Unix(1000, 0)}
			for _, view := range [][]core.Member{members[:first], members} {
				s.step(core.View{Self: a, Members: view})
				for range 2 {
					for _, m := range view {
						r := reports(5)
						for n := range cfg.Shards {
							if alloc.Home(n).Home == m {
								r.Active = append(r.Active, core.Tenure{Shard: n, Token: 1})
							}
						}
						s.hear(m, r)
					}
					s.now = s.now.Add(1100 * ms)
					s.step(core.Wake{})
				}
			}
			for n := range cfg.Shards {
				shards[alloc.Home(n).Home]++
			}
		}
		for i, m := range members {
			require.InDelta(t, want[i], shards[m], 9, "of 120 shards, %d members at first", first)
		}
	}
}
