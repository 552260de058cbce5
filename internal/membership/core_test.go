package membership

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fixture drives one core by hand: member "a" at a:1.
type fixture struct {
	t   *testing.T
	c   *core
	now time.Time
	out []effect // of the last step
}

func newFixture(t *testing.T) *fixture {
	return &fixture{t: t, c: newCore(defaultSettings(), "", "a:1", "sys", 100, nil),
		now: time.UnixMilli(1_000_000)}
}

func at(ids ...string) topology {
	var t topology
	for _, id := range ids {
		t.members = append(t.members, listed{ID: id, Address: id + ":1"})
	}
	return t
}

func (f *fixture) step(e event) *fixture {
	f.out = f.c.Step(f.now, e)
	return f
}

func (f *fixture) pass(d time.Duration) *fixture {
	f.now = f.now.Add(d)
	return f
}

// from returns a hello of member id that is valid unless the test changes it.
func from(id string, incarnation, sequence, stamp uint64) received {
	return received{member: id, from: incarnation, hello: hello{
		address: id + ":1", sequence: sequence, stamp: stamp, maxStamp: stamp, listsYou: true,
	}}
}

func (f *fixture) dropped() (out []reason) {
	for _, e := range f.out {
		if d, ok := e.(dropped); ok {
			out = append(out, d.why)
		}
	}
	return out
}

func (f *fixture) sent() (out []send) {
	for _, e := range f.out {
		if s, ok := e.(send); ok {
			out = append(out, s)
		}
	}
	return out
}

func (f *fixture) member(id string) Member {
	m, ok := f.c.view.Find(id)
	require.True(f.t, ok, id)
	return m
}

func TestCore_WhatIsDropped(t *testing.T) {
	ahead := stampAt(time.UnixMilli(1_000_000).Add(400 * 24 * time.Hour))
	for name, test := range map[string]struct {
		before []event
		hello  received
		want   []reason
	}{
		"first":  {nil, from("b", 1, 1, 5), nil},
		"own id": {nil, from("a", 1, 1, 5), []reason{whyOwn}},
		"own address": {nil, func() received {
			r := from("b", 1, 1, 5)
			r.hello.address = "a:1"
			return r
		}(), []reason{whyOwn}},
		"not listed": {nil, from("x", 1, 1, 5), []reason{whyStranger}},
		"twice": {[]event{from("b", 1, 1, 5)}, from("b", 1, 1, 5),
			[]reason{whyDuplicate}},
		"overtaken": {[]event{from("b", 1, 3, 5)}, from("b", 1, 2, 5),
			[]reason{whyDuplicate}},
		"for another": {nil, func() received {
			r := from("b", 1, 1, 5)
			r.to = 99
			return r
		}(), []reason{whyStale}},
		"for us": {nil, func() received {
			r := from("b", 1, 1, 5)
			r.to = 100
			return r
		}(), nil},
		"other address": {nil, func() received {
			r := from("b", 1, 1, 5)
			r.hello.address = "z:1"
			return r
		}(), []reason{whyStale}},
		"no sequence":     {nil, from("b", 1, 0, 5), []reason{whyMalformed}},
		"stamp far ahead": {nil, from("b", 1, 1, ahead), []reason{whyMalformed}},
		"stamp changed": {[]event{from("b", 1, 1, 5)}, from("b", 1, 2, 6),
			[]reason{whyMalformed}},
		"older process":   {[]event{from("b", 1, 1, 5)}, from("b", 2, 1, 4), []reason{whyStale}},
		"newer process":   {[]event{from("b", 1, 1, 5)}, from("b", 2, 1, 6), nil},
		"newer, no stamp": {[]event{from("b", 1, 9, 5)}, from("b", 2, 1, 0), nil},
		"back from before": {[]event{from("b", 1, 1, 5), from("b", 2, 1, 0)}, from("b", 1, 2, 5),
			[]reason{whyStale}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t).step(at("a", "b"))
			for _, e := range test.before {
				f.step(e)
				require.Empty(t, f.dropped())
			}
			known := f.member("b")
			f.step(test.hello)
			require.Equal(t, test.want, f.dropped())
			if test.want != nil {
				require.Equal(t, known, f.member("b"), "what is dropped changes nothing")
			} else {
				require.Equal(t, test.hello.from, f.member("b").Incarnation)
			}
		})
	}
}

func TestCore_NothingBeforeThisMemberIsListed(t *testing.T) {
	f := newFixture(t).step(at("b", "c"))
	require.Empty(t, f.out)
	f.step(from("b", 1, 1, 5))
	require.Equal(t, []reason{whyStranger}, f.dropped())
	f.step(wake{})
	require.Empty(t, f.out)
}

func TestCore_StampIsAboveAllHeardOf(t *testing.T) {
	f := newFixture(t).step(at("a", "b", "c"))
	ahead := stampAt(f.now.Add(time.Hour))
	f.step(from("b", 1, 1, 7))
	require.Zero(t, f.c.stamp, "c has not answered")
	r := from("c", 1, 1, 0)
	r.hello.maxStamp = ahead // of a member that has left since
	f.step(r)
	require.Equal(t, ahead+1, f.c.stamp)
	require.Len(t, f.sent(), 2, "told to everybody at once")
	f.pass(time.Hour).step(wake{})
	require.Equal(t, ahead+1, f.c.stamp, "and kept")
}

func TestCore_AnswersOnlyWhoAsks(t *testing.T) {
	f := newFixture(t).step(at("a", "b"))
	f.step(from("b", 1, 1, 5)).pass(time.Millisecond)
	f.step(from("b", 1, 2, 5))
	require.Empty(t, f.sent())
	ask := from("b", 1, 3, 5)
	ask.hello.answer = true
	f.step(ask)
	require.Len(t, f.sent(), 1)
	require.False(t, f.sent()[0].hello.answer, "an answer asks for none: no ping-pong")
	require.EqualValues(t, 1, f.sent()[0].to)
}

func TestCore_FewStrangersAreAnswered(t *testing.T) {
	f := newFixture(t).step(at("a"))
	answers := 0
	ask := func() {
		for i := range 100 {
			r := from(fmt.Sprint("x", i), 1, 1, 5)
			r.hello.answer = true
			answers += len(f.step(r).sent())
			for _, s := range f.sent() {
				require.False(t, s.hello.listsYou)
			}
		}
	}
	ask()
	require.Equal(t, 8, answers)
	f.pass(time.Second)
	ask()
	require.Equal(t, 16, answers)
}

func TestCore_FormerIncarnationsAreBounded(t *testing.T) {
	f := newFixture(t).step(at("a", "b"))
	for i := range uint64(1000) {
		f.step(from("b", i+1, 1, 0))
	}
	require.LessOrEqual(t, len(f.c.roster.former), f.c.maxRetired)
}

func TestCore_OwnIDWhenSeveralAreListedAtOurAddress(t *testing.T) {
	here := func(ids ...string) topology {
		var t topology
		for _, id := range ids {
			t.members = append(t.members, listed{ID: id, Address: "a:1"})
		}
		return t
	}
	for name, test := range map[string]struct {
		events []topology
		want   string
	}{
		"alone":                  {[]topology{here("u1")}, "u1"},
		"named after the system": {[]topology{here("sys", "zz")}, "sys"},
		"as etcd does":           {[]topology{here("shop@sys", "shop@zz")}, "shop@sys"},
		"listed last":            {[]topology{here("u9"), here("u9", "u1")}, "u1"},
		"stays": {[]topology{here("u9"), here("u9", "u1"), here("u9", "u1"),
			here("u1", "u9")}, "u1"},
		"the former one disappears":   {[]topology{here("u9"), here("u9", "u1"), here("u1")}, "u1"},
		"replaced in one event":       {[]topology{here("u9"), here("u1")}, "u1"},
		"beginning of another's name": {[]topology{here("shop@sys", "shop@sys2")}, "shop@sys"},
	} {
		f := newFixture(t)
		for _, e := range test.events {
			f.step(e)
		}
		require.Equal(t, test.want, f.c.view.Self.ID, name)
		require.Len(t, f.c.view.Members, 1, name)
		require.False(t, f.c.removed, name)
	}
}

func TestCore_VerdictsOfOneMomentCountOnce(t *testing.T) {
	f := newFixture(t).step(at("a", "b"))
	f.step(from("b", 1, 1, 5))
	no := func(sequence uint64) received {
		r := from("b", 1, sequence, 5)
		r.hello.listsYou = false
		return r
	}
	for i := range uint64(10) {
		f.step(no(2 + i))
	}
	require.False(t, f.c.removed)
	f.pass(time.Second).step(from("b", 1, 20, 5)).step(no(21))
	require.False(t, f.c.removed, "it listed us in between")
	f.pass(time.Second).step(no(22))
	require.True(t, f.c.removed)
	require.True(t, f.c.view.Removed)
	require.Empty(t, f.step(at("a", "b")).out, "final")
}

func TestCore_SamesEventsSameEffects(t *testing.T) {
	run := func() (all [][]effect) {
		f := newFixture(t)
		r := rand.New(rand.NewPCG(1, 2))
		for range 500 {
			var e event = wake{}
			switch r.IntN(4) {
			case 0:
				ids := []string{"a"}
				for _, id := range []string{"b", "c", "d", "e", "f", "g", "h"} {
					if r.IntN(3) > 0 {
						ids = append(ids, id)
					}
				}
				e = at(ids...)
			case 1, 2:
				h := from(string(rune('b'+r.IntN(8))), 1+r.Uint64N(3), 1+r.Uint64N(100),
					r.Uint64N(3))
				h.hello.listsYou, h.hello.answer = r.IntN(5) > 0, r.IntN(2) > 0
				e = h
			}
			f.pass(time.Duration(r.IntN(300)) * time.Millisecond).step(e)
			all = append(all, f.out)
		}
		return all
	}
	first := run()
	for range 5 {
		require.True(t, reflect.DeepEqual(first, run()))
	}
}

func TestCore_SteadyStateIsQuiet(t *testing.T) {
	f := newFixture(t).step(at("a", "b"))
	f.step(from("b", 1, 1, 5))
	n := 0
	for i := range uint64(600) { // a minute
		f.pass(100 * time.Millisecond).step(wake{})
		n += len(f.sent())
		if i%20 == 0 {
			f.step(from("b", 1, 2+i, 5))
		}
	}
	require.Less(t, n, 40)
}

func TestCore_StampChosenAloneIsPrivateUntilFinal(t *testing.T) {
	f := newFixture(t).step(at("a"))
	alone := f.c.stamp
	require.NotZero(t, alone)
	ask := from("b", 1, 1, 5)
	ask.hello.answer = true
	f.step(ask)
	require.Zero(t, f.sent()[0].hello.stamp, "b, which lists us already, would hold us to it")
	f.step(at("a", "b"))
	require.Zero(t, f.c.stamp)
	ask.hello.sequence, ask.hello.stamp = 2, alone+77
	f.step(ask)
	require.Equal(t, alone+78, f.c.stamp)

	f = newFixture(t).step(at("a"))
	f.pass(2 * time.Second).step(from("b", 1, 1, 5))
	ask.hello.sequence = 2
	f.step(ask)
	require.Equal(t, f.c.stamp, f.sent()[0].hello.stamp)
	f.step(at("a", "b"))
	require.Equal(t, alone, f.c.stamp, "after the wait it is kept")
}

// Seed 8703 of TestSimulation_SplitsHeal: two members permanently had different stamps for a third
// one.
func TestCore_WithdrawableStampIsHiddenFromLostMembers(t *testing.T) {
	f := newFixture(t).step(at("a", "b")).pass(time.Second).step(at("a")).pass(
		1500 * time.Millisecond)
	f.c.upAt = f.now // as after a start
	f.c.lost.all[0].next = f.now
	f.step(wake{})
	require.NotZero(t, f.c.stamp)
	require.False(t, f.c.told)
	require.Len(t, f.sent(), 1)
	require.Zero(t, f.sent()[0].hello.stamp)
	require.Zero(t, f.sent()[0].hello.maxStamp)
}
