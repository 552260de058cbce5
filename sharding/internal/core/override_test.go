package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// decided returns the homes that the coordinator has assigned.
func decided(c *core.Allocation, shards int) (out []string) {
	for n := range shards {
		out = append(out, c.Home(n).Home.ID)
	}
	return out
}

// arrived makes every member report the shards assigned to it, and advances the time.
func (s *story) arrived(after time.Duration, shards int) {
	alloc := s.core.(*core.Allocation)
	for _, m := range []core.Member{a, b, c} {
		var has []core.Tenure
		for n := range shards {
			if alloc.Home(n).Home == m {
				has = append(has, core.Tenure{Shard: n, Token: alloc.Home(n).Version.N})
			}
		}
		s.hear(m, reports(5, has...))
	}
	s.now = s.now.Add(after)
	s.step(core.Wake{})
}

// S35: an override decides the home of a shard without one, and moves a shard that has arrived
// elsewhere; an override for a member that is not fit is ignored.
func TestAllocation_FollowsOverridesForFitMembers(t *testing.T) {
	cfg := config(4)
	cfg.Moves, cfg.Stable = 4, time.Second
	alloc := core.NewAllocation(cfg, 5, nil)
	s := tell(alloc)
	s.step(core.Overrides{Homes: map[int]string{0: "c", 1: "c", 2: "gone", -1: "a", 99: "a"}})
	s.arrived(300*ms, 4)
	require.Equal(t, []string{"c", "c", "a", "b"}, decided(alloc, 4), "the others evenly")
	s.arrived(1100*ms, 4)
	require.Equal(t, []string{"c", "c", "a", "b"}, decided(alloc, 4))

	s.step(core.Overrides{Homes: map[int]string{0: "c", 1: "c", 3: "c"}})
	s.arrived(300*ms, 4)
	require.Equal(t, []string{"c", "c", "a", "c"}, decided(alloc, 4),
		"a shard with an override is not moved for balance")
	s.arrived(300*ms, 4)
	require.Equal(t, []string{"c", "c", "a", "c"}, decided(alloc, 4))

	s.step(core.View{Self: a, Members: []core.Member{a, b}})
	s.now = s.now.Add(300 * ms)
	s.step(core.Wake{})
	require.NotContains(t, decided(alloc, 4), "c", "it is gone, and its shards wait for nobody")
}

func TestAllocation_AnOverrideMayNameAnAddress(t *testing.T) {
	cfg := config(1)
	cfg.Moves = 1
	alloc := core.NewAllocation(cfg, 5, nil)
	s := &story{core: alloc, now: time.Unix(1000, 0)}
	x := core.Member{ID: "x", Incarnation: 1, Address: "h:1"}
	s.step(core.View{Self: a, Members: []core.Member{a, x}})
	s.hear(a, reports(5))
	s.hear(x, reports(5))
	s.step(core.Overrides{Homes: map[int]string{0: "h:1"}})
	s.now = s.now.Add(300 * ms)
	s.step(core.Wake{})
	require.Equal(t, x, alloc.Home(0).Home)
}

// S36: a shard without a home waits for the user's function, but only for a bounded time; there is
// one question at a time.
func TestAllocation_WaitsForAnAnswerButNotForLong(t *testing.T) {
	cfg := config(2)
	cfg.Consult, cfg.Again, cfg.Answer, cfg.Moves, cfg.Stable = true, 2*time.Second, 700*ms,
		2, time.Second
	consults := func(effects []core.Effect) (out []core.Consult) {
		for _, e := range effects {
			if e, ok := e.(core.Consult); ok {
				out = append(out, e)
			}
		}
		return out
	}
	begin := func() (*story, *core.Allocation, core.Consult) {
		alloc := core.NewAllocation(cfg, 5, nil)
		s := tell(alloc)
		for _, m := range []core.Member{a, b, c} {
			s.hear(m, reports(5))
		}
		s.now = s.now.Add(300 * ms)
		asked := consults(s.step(core.Wake{}))
		require.Len(t, asked, 1)
		require.Equal(t, []core.Member{a, b, c}, asked[0].Hosts)
		require.Equal(t, []string{"", ""}, decided(alloc, 2))
		return s, alloc, asked[0]
	}

	s, alloc, asked := begin()
	s.step(core.Overrides{Round: asked.Round + 1, Homes: map[int]string{0: "a"}})
	require.Equal(t, []string{"", ""}, decided(alloc, 2), "the answer to another question")
	s.step(core.Overrides{Round: asked.Round, Homes: map[int]string{0: "c", 1: "b"}})
	require.Equal(t, []string{"c", "b"}, decided(alloc, 2))
	s.step(core.Overrides{Round: asked.Round, Homes: map[int]string{0: "a"}})
	s.arrived(300*ms, 2)
	require.Equal(t, []string{"c", "b"}, decided(alloc, 2), "a second answer")

	s, alloc, asked = begin()
	for range 5 {
		s.now = s.now.Add(300 * ms)
		require.Empty(t, consults(s.hear(a, reports(5))), "one question at a time")
	}
	require.NotContains(t, decided(alloc, 2), "", "decided without the answer")
	s.step(core.Overrides{Round: asked.Round, Homes: map[int]string{0: "c", 1: "c"}})
	s.arrived(260*ms, 2)
	require.Equal(t, []string{"c", "c"}, decided(alloc, 2), "a late answer moves them")
	s.now = s.now.Add(2 * time.Second)
	again := consults(s.hear(a, reports(5)))
	require.Len(t, again, 1, "now and then")
	require.Equal(t, []core.Member{c, c}, again[0].Homes)
}

// S26: with a spread of two, shards move only when counts differ by more.
func TestAllocation_SpreadIsHowUnevenHomesMayBe(t *testing.T) {
	for spread, want := range map[int]int{0: 2, 1: 2, 3: 1, 4: 0} {
		cfg := config(4)
		cfg.Moves, cfg.Stable, cfg.Spread = 4, time.Second, spread
		s := balanced(cfg)
		s.now = s.now.Add(1300 * ms)
		require.Len(t, homes(s.step(core.Wake{})), want, "spread %d", spread)
	}
}
