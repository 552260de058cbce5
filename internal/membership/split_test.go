package membership

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// denying returns a hello of a member that does not list us, for our incarnation.
func denying(id string, sequence uint64, c claim) received {
	r := from(id, uint64(id[0]), sequence, 1000+uint64(id[0]))
	r.to, r.hello.listsYou, r.hello.claim = 100, false, c
	return r
}

var (
	large = claim{size: 9, oldest: 1}
	small = claim{size: 1, oldest: 1 << 60}
)

// alone returns member a, which dropped b some seconds ago.
func alone(t *testing.T) *fixture {
	f := newFixture(t).step(at("a", "b"))
	hello := from("b", 'b', 1, 1098)
	hello.hello.size = 2
	f.step(hello).step(at("a"))
	require.NotZero(t, f.c.stamp)
	return f.pass(5 * time.Second)
}

func (f *fixture) yields() (out []send) {
	for _, s := range f.sent() {
		if s.hello.yield {
			out = append(out, s)
		}
	}
	return out
}

func (f *fixture) grants() (out []send) {
	for _, s := range f.sent() {
		if s.hello.permit != 0 {
			out = append(out, s)
		}
	}
	return out
}

// conflict sends hellos of b, which does not list a, until a requests a permit.
func (f *fixture) conflict(c claim) send {
	for i := range uint64(20) {
		f.step(denying("b", 10+i, c))
		if y := f.yields(); len(y) > 0 {
			return y[0]
		}
		f.pass(250 * time.Millisecond).step(wake{})
		if y := f.yields(); len(y) > 0 {
			return y[0]
		}
	}
	f.t.Fatal("no request")
	return send{}
}

func TestRank_IsAStrictTotalOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var all []rank
	for i := range 200 {
		all = append(all, rank{claim{size: r.Uint64N(3), oldest: r.Uint64N(3),
			arbiter: r.IntN(2) == 0, disowned: r.IntN(2) == 0},
			r.Uint64N(3), fmt.Sprint(i)})
	}
	for _, a := range all {
		require.False(t, a.before(a))
		for _, b := range all {
			require.True(t, a.id == b.id || a.before(b) != b.before(a), "%+v %+v", a, b)
			for _, c := range all {
				if a.before(b) && b.before(c) && !a.before(c) {
					t.Fatalf("%+v %+v %+v", a, b, c)
				}
			}
		}
	}
}

func TestRank_WhatDecides(t *testing.T) {
	all := []rank{ // in order
		{claim{size: 1, arbiter: true, oldest: 9}, 9, "z"},
		{claim{size: 5, oldest: 9, disowned: true}, 9, "z"},
		{claim{size: 4, oldest: 3}, 7, "c"},
		{claim{size: 4, oldest: 3}, 8, "b"},
		{claim{size: 4, oldest: 3}, 0, "a"},
		// the whole fragment has another oldest member
		{claim{size: 4, oldest: 3, mark: 1}, 0, "a"},
		{claim{size: 4, oldest: 4}, 5, "b"},
		{claim{size: 4, oldest: 0}, 5, "b"},
		{claim{size: 4, oldest: 0}, 5, "c"},
		{claim{size: 4, oldest: 1, disowned: true}, 1, "a"},
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			require.True(t, a.before(b), "%+v %+v", a, b)
			require.False(t, b.before(a))
		}
	}
}

func TestSplit_TheSmallerSideAsksAndGoesWithAPermit(t *testing.T) {
	f := alone(t)
	y := f.conflict(large)
	require.Equal(t, "b:1", y.address)
	require.EqualValues(t, 'b', y.to)
	require.True(t, y.hello.droppedYou)
	require.False(t, f.c.removed, "not without a permit")
	grant := denying("b", 90, large)
	grant.hello.permit = y.hello.sequence
	f.step(grant)
	require.ErrorIs(t, f.c.view.Cause, ErrSteppedDown)
	require.ErrorIs(t, f.c.view.Cause, ErrRemoved)
	require.True(t, f.c.removed)
}

func TestSplit_APermitMustAnswerARequestOfThisMoment(t *testing.T) {
	for name, change := range map[string]func(f *fixture, grant *received){
		"another request": func(_ *fixture, g *received) { g.hello.permit-- },
		"of another member": func(_ *fixture, g *received) {
			g.member, g.hello.address = "c", "c:1"
		},
		"of a former process": func(_ *fixture, g *received) { g.from++ },
		"too late":            func(f *fixture, _ *received) { f.pass(5100 * time.Millisecond) },
		"giver is behind us":  func(_ *fixture, g *received) { g.hello.claim = small },
		"we promised to stay": func(f *fixture, _ *received) {
			f.c.permits.given = []permit{{id: "x", until: f.now.Add(time.Minute)}}
		},
		"we are leaving": func(f *fixture, _ *received) { f.step(leave{}) },
		"we list each other": func(f *fixture, g *received) {
			f.step(at("a", "b"))
			g.hello.listsYou = true
		},
		"nobody has asked yet": func(f *fixture, _ *received) { f.c.permits.requests = nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := alone(t)
			grant := denying("b", 90, large)
			grant.hello.permit = f.conflict(large).hello.sequence
			change(f, &grant)
			f.step(grant)
			require.False(t, f.c.removed)
			declined := false
			for _, s := range f.sent() {
				declined = declined || s.hello.declined == 90
			}
			require.True(t, declined, "so that the giver is free again")
		})
	}
	f := alone(t)
	grant := denying("b", 90, large)
	grant.hello.permit, grant.to = f.conflict(large).hello.sequence, 99
	f.step(grant)
	require.Equal(t, []reason{whyStale}, f.dropped(), "it is for a former process at our address")
}

func TestSplit_NobodyGoesWithoutPatience(t *testing.T) {
	f := alone(t)
	f.step(denying("b", 10, large))
	for range 7 {
		f.pass(250 * time.Millisecond).step(wake{})
		require.Empty(t, f.yields())
	}
	f.pass(250 * time.Millisecond).step(wake{})
	require.Len(t, f.yields(), 1)

	f = alone(t)
	f.step(denying("b", 10, large)).pass(time.Second).step(at("a", "c")) // a join changes the view
	for range 7 {
		f.pass(250 * time.Millisecond).step(wake{})
		require.Empty(t, f.yields())
	}
}

// A member that sees no other one does not end its incarnation either because of a process that it
// has never listed: anybody can claim to list it.
func TestSplit_AMemberAloneStaysForAStranger(t *testing.T) {
	f := newFixture(t).step(at("a")).pass(5 * time.Second)
	listing := func(sequence uint64) received {
		r := denying("b", sequence, large)
		r.hello.listsYou = true
		return r
	}
	for i := range uint64(400) {
		f.pass(250 * time.Millisecond).step(listing(1 + i))
		require.Empty(t, f.yields())
	}
	require.Len(t, f.c.conflicts.reported, 1, "operators are told")
}

// For example two clusters of one name that reach each other through a reused address: new ids
// would not help.
func TestSplit_MembersNeverListedTogetherAreReported(t *testing.T) {
	f := newFixture(t).step(at("a")).pass(5 * time.Second)
	for i := range uint64(400) {
		f.pass(250 * time.Millisecond).step(denying("b", 1+i, large))
		require.Empty(t, f.yields())
	}
	require.Len(t, f.c.conflicts.reported, 1)
}

func TestSplit_OnlyWhoHasHeardFromUsIsEvidence(t *testing.T) {
	f := alone(t)
	r := denying("b", 10, large)
	r.to, r.hello.answer = 0, true
	f.step(r)
	require.Empty(t, f.c.conflicts.by)
	require.True(t, f.sent()[0].hello.answer, "it is asked to answer")
	f.step(denying("b", 11, large))
	require.Len(t, f.c.conflicts.by, 1)
}

func TestSplit_EvidenceEndsWhenTheOtherIsSilent(t *testing.T) {
	f := alone(t)
	f.conflict(large)
	f.pass(time.Minute).step(wake{})
	require.Empty(t, f.c.conflicts.by)
	require.Empty(t, f.yields())
}

func TestSplit_APermitIsGivenToWhoIsBehindUs(t *testing.T) {
	ask := func(f *fixture, id string, sequence uint64, c claim) []send {
		r := denying(id, sequence, c)
		r.hello.yield = true
		f.step(r)
		return f.grants()
	}
	f := alone(t)
	require.Empty(t, ask(f, "b", 10, large), "it is before us")
	g := ask(f, "b", 11, small)
	require.Len(t, g, 1)
	require.EqualValues(t, 11, g[0].hello.permit)
	require.EqualValues(t, 'b', g[0].to)
	require.Empty(t, ask(f, "c", 10, small), "one at a time")
	again := ask(f, "b", 12, small)
	require.Len(t, again, 1, "the answer may have been lost")
	require.Len(t, f.c.permits.given, 1)

	for i := range uint64(40) { // while it is out, we stay
		f.pass(time.Second / 4).step(denying("d", 10+i, large))
		require.Empty(t, f.yields())
	}
	f.step(at("a", "b")).step(at("a", "b", "c"))
	require.Len(t, f.c.permits.given, 1, "b itself is listed, it has not gone")
	f.step(topology{members: []listed{{ID: "a", Address: "a:1"}, {ID: "b2", Address: "b:1"}}})
	require.Empty(t, f.c.permits.given, "it is back")
}

func TestSplit_APermitEnds(t *testing.T) {
	given := func() (*fixture, send) {
		f := alone(t)
		r := denying("b", 10, small)
		r.hello.yield = true
		f.step(r)
		require.Len(t, f.c.permits.given, 1)
		return f, f.grants()[0]
	}
	f, _ := given()
	f.pass(29 * time.Second).step(wake{})
	require.Len(t, f.c.permits.given, 1)
	f.pass(time.Second).step(wake{})
	require.Empty(t, f.c.permits.given)

	f, g := given()
	no := denying("b", 11, small)
	no.hello.declined = g.hello.sequence - 1
	f.step(no)
	require.Len(t, f.c.permits.given, 1, "of an earlier one")
	no = denying("b", 12, small)
	no.hello.declined = g.hello.sequence
	f.step(no)
	require.Empty(t, f.c.permits.given)
}

func TestSplit_NoPermitFromAMemberThatMayGo(t *testing.T) {
	ask := denying("c", 10, small)
	ask.hello.yield = true
	f := alone(t)
	require.Len(t, f.step(ask).grants(), 1, "else")

	f = alone(t)
	f.conflict(large)
	require.Empty(t, f.step(ask).grants(), "it has asked for one itself")

	f = alone(t)
	f.step(leave{})
	require.Empty(t, f.step(ask).grants(), "it leaves")

	f = alone(t)
	ask.hello.listsYou = true
	f.step(at("a", "c"))
	require.Empty(t, f.step(ask).grants(), "there is no conflict")
}

func TestSplit_HowManyGiveWayAtOnce(t *testing.T) {
	members := []string{"a"}
	for i := range 16 {
		members = append(members, fmt.Sprint("m", i))
	}
	others := members
	for i := range 10 {
		others = append(others, fmt.Sprint(i))
	}
	f := newFixture(t).step(at(others...)).step(at(members...)).pass(5 * time.Second)
	allAsk := func(sequence uint64) {
		for i := range 10 {
			r := denying(fmt.Sprint(i), sequence, small)
			r.hello.yield = true
			f.step(r)
		}
	}
	allAsk(1)
	require.Len(t, f.c.permits.given, 1, "none of the others has said that it lists us")
	for sequence, n := range []int{2, 3, 4, 4, 4} { // fragments of 2, 3, 4, 5 and 6
		id := members[1+sequence]
		f.step(from(id, uint64(1000+sequence), 1, 1098))
		allAsk(uint64(2 + sequence))
		require.Len(t, f.c.permits.given, n)
	}
	for i, id := range members[6:] {
		f.step(from(id, uint64(2000+i), 1, 1098))
	}
	allAsk(9)
	require.Len(t, f.c.permits.given, 5, "a quarter of 17")
}

// In a ring of members each of which disowns the next, all would be expelled at once without
// permits.
func TestSplit_PermissionComesFromMembersThatKnowIt(t *testing.T) {
	disown := func(speaks bool) *fixture {
		f := newFixture(t).step(at("a", "b"))
		yes := from("b", 'b', 1, 1098)
		f.step(yes)
		for i := range uint64(4) {
			c := claim{}
			if speaks {
				c = small
			}
			r := denying("b", 2+i, c)
			r.hello.stamp = 1098
			f.pass(time.Second).step(r)
		}
		return f
	}
	require.True(t, disown(false).c.removed)
	f := disown(true)
	require.False(t, f.c.removed)
	require.True(t, f.c.disowned)
}

func TestTuning(t *testing.T) {
	for _, c := range []struct {
		t                Tuning
		patience, joined time.Duration
	}{
		{Tuning{}, 2 * time.Second, 20 * time.Second},
		{Tuning{Patience: -1}, 2 * time.Second, 20 * time.Second},
		{Tuning{Patience: 5 * time.Second, Incarnations: 2}, 5 * time.Second, 50 * time.Second},
		{Tuning{Incarnations: 3}, 4 * time.Second, 40 * time.Second},
		{Tuning{Incarnations: 5}, 16 * time.Second, 160 * time.Second},
		{Tuning{Incarnations: 1 << 30}, time.Minute, 10 * time.Minute},
		{Tuning{Patience: 2 * time.Minute, Incarnations: 9}, 2 * time.Minute, 20 * time.Minute},
		{Tuning{Patience: time.Hour}, 10 * time.Minute, 100 * time.Minute},
	} {
		s := c.t.apply(defaultSettings())
		require.Equal(t, []time.Duration{c.patience, c.joined}, []time.Duration{
			s.patience, s.joinPatience}, "%+v", c.t)
	}
}

// Seed 502684 of TestSimulation_SplitsHeal: a provider listed b, then dropped it, and only then
// listed a. The two stayed apart for good, since neither seemed to have dropped the other.
func TestSplit_AMemberDroppedBeforeWeAreListedIsDropped(t *testing.T) {
	f := newFixture(t).step(at("b", "c")).step(at("c")).step(at("a", "c")).pass(5 * time.Second)
	y := f.conflict(large)
	require.Equal(t, "b:1", y.address)
	require.True(t, y.hello.droppedYou)
}

// Seed 430 of TestSimulation_OneSplitCostsLosersOneIncarnation: the oldest members of two fragments
// had equal stamps, and members of each stepped down for the other.
func TestClaim_FragmentsWithEqualStampsAreToldApart(t *testing.T) {
	f := newFixture(t).step(at("a", "b", "c"))
	f.step(from("b", 1, 1, 5)).step(from("c", 2, 1, 5))
	m := f.c.claim()
	require.EqualValues(t, 5, m.oldest)
	require.Equal(t, mark("b"), m.mark)
	require.NotEqual(t, mark("b"), mark("c"))
}
