package core

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/quorum"
)

// Members that leave in order.

func TestDrain_EndsWhenAMajorityOfTheRestHasEverything(t *testing.T) {
	l := newLab(t, "a", "b", "c", "d")
	l.update("a", Level{}, add("s", "x"))
	l.step("a", Drain{ID: 77, Deadline: l.now.Add(time.Minute)})
	require.NotContains(t, l.done, uint64(77))
	l.deliver(func(m mail) bool { return m.from < "c" && m.to < "c" })
	require.NotContains(t, l.done, uint64(77), "b alone is no majority of b, c and d")
	l.deliver(without("d"))
	l.succeeded(77)
}

// All members leave in order, one after the other, and no acknowledged write is lost.
func TestDrain_MembersThatLeaveOneByOneLoseNothing(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	id := l.update("a", majority, add("s", "x"))
	l.deliver(without("c"))
	require.Contains(t, l.done, id)
	l.take(all) // c receives nothing
	leave := func(name string, rest ...string) {
		l.id++
		l.step(name, Drain{ID: l.id, Deadline: l.now.Add(time.Minute)})
		l.deliver(without("c"))
		if _, done := l.done[l.id]; !done {
			l.deliver(all)
		}
		l.take(all) // nothing of it is in flight any more
		l.succeeded(l.id)
		delete(l.cores, name)
		l.seeAll(rest...)
	}
	leave("a", "b", "c")
	leave("b", "c")
	l.shows("c", "s/x=1\n")
}

// Three of five acknowledge a write and leave, each seeing fewer members than the one before. The
// other two, which are not in view, continue.
func TestDrain_ThoseOutOfViewAreToBeHandedItToo(t *testing.T) {
	l := newLab(t, "a", "b", "c", "d", "e")
	id := l.update("a", majority, add("s", "x"))
	l.deliver(func(m mail) bool { return m.from < "d" && m.to < "d" })
	require.Nil(t, l.done[id].Short)
	l.take(all)
	l.see("a", "bc")
	l.step("a", Drain{ID: 77, Deadline: l.now.Add(5 * time.Second)})
	l.rounds(4, without("d"))
	require.NotContains(t, l.done, uint64(77), "two of four")
	l.rounds(2, without("d"))
	require.Equal(t, &Short{Needed: 3, Answered: 2, Counted: 5, Missing: []string{"d", "e"}},
		l.done[77].Short)

	l.step("b", View{})
	l.step("b", Drain{ID: 78, Deadline: l.now.Add(time.Hour)})
	require.Equal(t, 3, l.done[78].Short.Needed, "nobody is in view, and a says that it leaves")
}

// A replica that has been forgotten is not one of the members: it hands over to a majority of all.
func TestDrain_OfAForgottenReplica(t *testing.T) {
	l := newLabOf(t, 3, "a", "b", "c", "d", "e")
	l.update("e", Level{}, add("s", "x"))
	l.take(all)
	l.rounds(20, without("e"))
	l.step("a", Forget{ID: 76, Member: "e", Force: true, Deadline: l.now.Add(time.Hour)})
	l.step("e", Drain{ID: 77, Leave: true, Deadline: l.now.Add(time.Hour)})
	l.rounds(4, func(m mail) bool {
		return m.from < "c" && m.to == "e" || m.from == "e" && m.to < "c"
	})
	l.shows("b", "s/x=1\n")
	require.False(t, l.cores["e"].members.Own().Counts())
	require.NotContains(t, l.done, uint64(77), "a and b are no majority of four")
	l.rounds(4, func(m mail) bool {
		return m.from < "d" && m.to == "e" || m.from == "e" && m.to < "d"
	})
	l.succeeded(77)
}

// twoOfThree returns a lab of a and b, which count c, too, and do not see it.
func twoOfThree(t *testing.T) *lab {
	l := newLabOf(t, 2, "a", "b", "c")
	for _, c := range l.cores {
		c.cfg.ForgetAfter = time.Hour
	}
	l.cores["c"] = nil
	l.see("a", "b")
	l.see("b", "a")
	return l
}

// One of three has crashed, and another restarts: it has the crashed one forgotten before it
// leaves. Otherwise the third could not admit it again, and no majority would be left.
func TestDrain_OfOneWhileAnotherIsMissing(t *testing.T) {
	l := twoOfThree(t)
	id := l.update("b", majority, add("s", "x"))
	l.deliver(all)
	require.Nil(t, l.done[id].Short)
	l.step("b", Drain{ID: 77, Leave: true, Deadline: l.now.Add(10 * time.Second)})
	l.rounds(2, all)
	require.NotContains(t, l.done, uint64(77), "c may be back in a moment")
	l.rounds(4, all)
	l.succeeded(77)

	l.start("b")
	l.meet()
	require.True(t, l.cores["b"].Ready())
	l.shows("b", "s/x=1\n")
	id = l.update("a", majority, add("s", "y"))
	l.deliver(all)
	require.Nil(t, l.done[id].Short, "a and b are a majority of two")

	l.start("c")
	l.meet()
	require.True(t, l.cores["c"].Ready(), "it enters again")
	l.shows("c", "s/x=1\ns/y=1\n")
}

// The other of two has crashed. What package sharding makes anew is not missed; everything else is,
// also a removal.
func TestDrain_OfTheLastOneAfterACrash(t *testing.T) {
	const table = "concord-sharding-cart/shard-7"
	for name, ops := range map[string][]op{
		"table":         {count(table, "k", 1)},
		"entry":         {count(table, "k", 1), add("s", "x")},
		"removed entry": {add("s", "x"), drop("s", "x"), count(table, "k", 1)},
	} {
		for _, from := range []string{"a", "b"} {
			l := newLabOf(t, 2, "a", "b")
			for _, o := range ops {
				l.update(from, majority, o)
				l.rounds(2, all)
			}
			l.cores["b"] = nil
			l.step("a", View{})
			l.step("a", Drain{ID: 77, Leave: true, Deadline: l.now.Add(time.Minute)})
			require.Contains(t, l.done, uint64(77), name)
			require.Equal(t, name == "table", l.done[77].Short == nil, "%s by %s", name, from)
		}
	}
}

// Two of three stop while the third is missing: neither waits for it.
func TestDrain_OfAllWhileOneIsMissing(t *testing.T) {
	l := twoOfThree(t)
	l.update("b", majority, add("s", "x"))
	l.deliver(all)
	for i, n := range []string{"a", "b"} {
		l.step(n, Drain{ID: uint64(77 + i), Leave: true, Deadline: l.now.Add(10 * time.Second)})
	}
	l.rounds(8, all)
	l.succeeded(77, 78)
}

// [M8] c is missing. a proposes that it goes, before b would, unless fewer than MinMembers would be
// counted then.
func TestForgetAfter_TheFirstByNameProposesDownToMinMembers(t *testing.T) {
	for least, goes := range map[int]bool{2: true, 3: false} {
		l := newLabOf(t, least, "a", "b", "c")
		l.cores["c"] = nil
		l.meet()
		for _, n := range []string{"a", "b"} {
			l.cores[n].cfg.ForgetAfter = 10 * time.Second
		}
		removes := func(name string) bool {
			for o := range l.cores[name].waits.All() {
				if _, ok := o.Task.(*removal); ok {
					return true
				}
			}
			return false
		}
		for first := 0; first < 30 && !removes("a") && !removes("b"); first++ {
			l.beat("b", "a")
			l.take(all)
		}
		require.Equal(t, goes, removes("a"), "MinMembers %d", least)
		require.False(t, removes("b"))
		l.rounds(20, all)
		want := quorum.In
		if goes {
			want = quorum.Gone
		}
		require.Equal(t, want, l.cores["b"].members.Of("c").Rank, "MinMembers %d", least)
	}
}

// What a replica receives while it waits to leave is not part of what it hands over.
func TestDrain_NothingIsHandedToOneThatLeaves(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "first"))
	l.take(all)
	l.step("b", Drain{ID: 77, Deadline: l.now.Add(time.Hour)}) // waits
	l.update("a", Level{}, add("s", "x"))
	l.take(between("a", "c"))
	l.step("a", Drain{ID: 78, Deadline: l.now.Add(time.Hour)})
	l.rounds(4, func(m mail) bool { return m.from != "c" && m.to != "c" })
	l.shows("b", "s/first=1\ns/x=1\n")
	require.NotContains(t, l.done, uint64(78), "b leaves too, and may have handed over before")
	l.rounds(4, all)
	l.succeeded(77, 78)
	l.shows("c", "s/first=1\ns/x=1\n")
}

// Members that are all stopped at once can hand over nothing, and do not wait for each other.
func TestDrain_AllAtOnceEnds(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "x"))
	l.deliver(all)
	for i, n := range l.order {
		l.step(n, Drain{ID: uint64(77 + i), Deadline: l.now.Add(time.Hour)})
	}
	l.deliver(all)
	for i, n := range l.order {
		require.Contains(t, l.done, uint64(77+i))
		require.Nil(t, l.done[uint64(77+i)].Short, n)
		require.NotNil(t, l.cores[n].peers)
	}
	l.step("a", View{})
	l.step("a", Drain{ID: 80, Deadline: l.now.Add(time.Hour)})
	require.Nil(t, l.done[80].Short, "those that left are out of view")
}

// The members of a cluster that is stopped say that they leave, and end one after the other. None
// waits for one that has ended to agree that it leaves.
func TestDrain_AllAtOnceWithForgettingEnds(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		names := []string{"a", "b", "c", "d", "e"}[:3+2*random.IntN(2)]
		l := newLabOf(t, len(names)/2+1, names...)
		l.update("a", Level{}, add("s", "x"))
		l.deliver(all)
		for i, n := range random.Perm(len(names)) {
			l.step(names[n], Drain{ID: uint64(100 + n), Leave: true,
				Deadline: l.now.Add(time.Hour)})
			for range random.IntN(3 * (i + 1)) {
				l.one(random)
			}
		}
		for range 20 { // 200 ms
			for range 200 {
				l.one(random)
			}
			for n, name := range names {
				if end, done := l.done[uint64(100+n)]; done && l.cores[name] != nil {
					ordered := end.Short == nil || end.Short.AllLeave
					require.True(t, ordered, "%d: %s: %+v", seed, name, end.Short)
					l.cores[name] = nil
				}
			}
			l.tick(10 * time.Millisecond)
		}
		for _, name := range names {
			require.True(t, l.cores[name] == nil, "%d: %s of %v still leaves", seed, name, names)
		}
	}
}

// one delivers one message by chance.
func (l *lab) one(random *rand.Rand) {
	if len(l.box) == 0 {
		return
	}
	i := random.IntN(len(l.box))
	m := l.box[i]
	l.box = slices.Delete(l.box, i, i+1)
	l.hand(m)
}

// A replica that waits to leave does not acknowledge what it receives, since it would hand that
// over to no member.
func TestDrain_TheLeavingCountNowhere(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, add("s", "x"))
	l.take(all)
	l.step("a", Drain{ID: 77, Deadline: l.now.Add(time.Minute)})
	l.deliver(without("c"))
	require.NotContains(t, l.done, uint64(77))
	id := l.update("b", majority, add("s", "y"))
	own := l.update("a", majority, add("s", "z"))
	l.step("b", Read{ID: 78, Level: majority, Deadline: l.now.Add(time.Minute)})
	for range 3 {
		l.deliver(without("c"))
		l.rounds(1, without("c"))
	}
	for _, id := range []uint64{id, own, 78} {
		require.NotContains(t, l.done, id)
	}
	l.rounds(5, all)
	l.succeeded(id, own, 77, 78)
}

// A member that has handed over what it did makes no update after that: nobody would get it, and
// the others count on having everything.
func TestDrain_NoUpdateAfterTheHandover(t *testing.T) {
	l := departing(t, false)
	leaving := l.leave("d")
	early := l.update("d", Level{}, count("c", "n", 1))
	require.NoError(t, l.done[early].Err)
	l.rounds(3, all)
	require.Contains(t, l.done, leaving)
	require.True(t, l.cores["a"].members.Of("d").Handed)
	late := l.update("d", Level{}, count("c", "n", 1))
	require.Equal(t, ErrLeft, l.done[late].Err)
	_, err := l.cores["d"].Direct(l.now, "c", func(*history.Txn) error { return nil })
	require.Equal(t, ErrStep, err)
	l.allShow("c/n=6\n")
}
