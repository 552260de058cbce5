package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asks advances the time to end and returns when an address was asked.
func (f *fixture) asks(address string, end time.Duration) (at []time.Duration) {
	begin := f.now
	for next := f.c.nextWake(f.now); !next.IsZero() && next.Sub(begin) <= end; next = f.c.nextWake(
		f.now) {
		require.True(f.t, next.After(f.now), "a wake in the past would never end")
		f.now = next
		f.step(wake{})
		for _, s := range f.sent() {
			if s.address == address && s.hello.answer {
				at = append(at, f.now.Sub(begin))
			}
		}
	}
	f.now = begin.Add(end)
	return at
}

func TestLost_IsAskedOftenThenSeldomAndForgotten(t *testing.T) {
	f := newFixture(t).step(at("a", "b")).step(at("a"))
	at := f.asks("b:1", 25*time.Hour)
	require.Equal(t, 2*time.Second, at[0])
	require.Equal(t, 120*time.Second, at[59])
	var gaps []time.Duration
	for i := 60; i < 70; i++ {
		gaps = append(gaps, (at[i] - at[i-1]).Round(time.Second))
	}
	s := time.Second
	require.Equal(t, []time.Duration{4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s, 60 * s,
		60 * s, 60 * s}, gaps)
	require.Less(t, at[len(at)-1], 24*time.Hour+time.Minute)
	require.Greater(t, at[len(at)-1], 23*time.Hour)
	require.Empty(t, f.c.lost.all)
}

func TestLost_WhoIsListedAgainOrHasLeftIsNotAsked(t *testing.T) {
	f := newFixture(t).step(at("a", "b")).step(at("a"))
	require.Equal(t, []string{"b:1"}, f.c.lost.members())
	f.step(topology{members: []listed{{ID: "a", Address: "a:1"}, {ID: "b2", Address: "b:1"}}})
	require.Empty(t, f.c.lost.all, "another process runs there")

	f = newFixture(t).step(at("a", "b"))
	bye := from("b", 1, 1, 5)
	bye.hello.leaving = true
	f.step(bye).step(at("a"))
	require.Empty(t, f.c.lost.all)

	f = newFixture(t).step(at("a", "b")).step(at("a"))
	f.step(bye)
	require.Empty(t, f.c.lost.all, "its good-bye may come later")
}

// A member whose process was killed and started again at once is never lost, but replaced. One that
// left before is not.
func TestReplaced_OnlyWithoutAGoodBye(t *testing.T) {
	other := topology{members: []listed{{ID: "a", Address: "a:1"}, {ID: "b2", Address: "b:1"}}}
	f := newFixture(t).step(at("a", "b")).step(other)
	require.Contains(t, f.out, effect(replaced{"b:1"}))

	f = newFixture(t).step(at("a", "b"))
	bye := from("b", 1, 1, 5)
	bye.hello.leaving = true
	f.step(bye).step(other)
	require.NotContains(t, f.out, effect(replaced{"b:1"}))

	f = newFixture(t).step(at("a", "b")).step(at("a"))
	require.NotContains(t, f.out, effect(replaced{"b:1"}))
	f.step(other)
	require.Contains(t, f.out, effect(replaced{"b:1"}), "it was lost for a moment")
}

func TestLost_AMemberThatLeavesSaysSo(t *testing.T) {
	f := newFixture(t).step(at("a", "b", "c")).step(leave{})
	n := 0
	for _, s := range f.sent() {
		if s.hello.leaving {
			n++
		}
	}
	require.Equal(t, 2, n)

	f = alone(t)
	f.step(denying("b", 10, large)).step(leave{})
	require.True(t, f.sent()[0].hello.leaving,
		"also to a member in conflict, which would ask for it")
	require.Equal(t, "b:1", f.sent()[0].address)
}

func TestLost_IsBounded(t *testing.T) {
	f := newFixture(t)
	for i := range 1000 {
		f.step(at("a", fmt.Sprint("x", i)))
	}
	require.Len(t, f.c.lost.all, 256)
	require.NotNil(t, f.c.lost.at("x998:1"), "the latest stay")
	require.LessOrEqual(t, len(f.c.conflicts.dropped), f.c.maxDropped)
}

func TestLost_AddressesNamedByOthers(t *testing.T) {
	f := alone(t)
	tell := func(n named) { f.step(n) }
	n := named{member: "b", from: 'b', to: 100, addresses: []string{"", "a:1", "b:1", "c:1"}}
	tell(n)
	require.Nil(t, f.c.lost.at("c:1"), "nobody knows who says so")
	f.step(denying("b", 10, large))
	n.to = 99
	tell(n)
	require.Nil(t, f.c.lost.at("c:1"), "for a former process")
	n.to = 100
	tell(n)
	require.NotNil(t, f.c.lost.at("c:1"))
	require.Nil(t, f.c.lost.at(""))
	require.Nil(t, f.c.lost.at("a:1"))
	require.Equal(t, []string{"b:1"}, f.c.lost.members(), "an address that was only named is not missing")
	for i := range 100 {
		n.addresses = nil
		for j := range 100 {
			n.addresses = append(n.addresses, fmt.Sprintf("x%d-%d:1", i, j))
		}
		tell(n)
	}
	require.Len(t, f.c.lost.all, 1+128)
	f.pass(11 * time.Minute).step(wake{})
	require.Len(t, f.c.lost.all, 1)
}

func TestLost_ViewsAreNamedToThoseThatDisagreeOnly(t *testing.T) {
	f := alone(t)
	f.step(at("a", "c")).step(denying("b", 10, large))
	var names []name
	for i := range uint64(20) {
		f.pass(500 * time.Millisecond).step(wake{})
		for _, e := range f.out {
			if n, ok := e.(name); ok {
				names = append(names, n)
			}
		}
		f.step(denying("b", 11+i, large))
		for _, e := range f.out {
			if n, ok := e.(name); ok {
				names = append(names, n)
			}
		}
	}
	require.Len(t, names, 2, "in ten seconds")
	require.Equal(t, name{"b:1", 'b', []string{"c:1"}}, names[0])
}

// If the cluster has more members than one message can name, they are named in rotation.
func TestLost_NamesGoRound(t *testing.T) {
	ids := []string{"a"}
	for i := range 300 {
		ids = append(ids, fmt.Sprintf("m%03d", i))
	}
	f := newFixture(t).step(at(ids...))
	seen := map[string]bool{}
	for range 3 {
		n := f.c.roster.names()
		require.Len(t, n, maxNames)
		for _, a := range n {
			seen[a] = true
		}
	}
	require.Len(t, seen, 300)
}
