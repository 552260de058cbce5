package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// departed returns the vector of n replicas that have departed.
func departed(n int) causal.Vector {
	dots := make([]causal.Dot, n)
	for i := range dots {
		dots[i] = causal.Dot{Replica: causal.Replica(i+1) * 0xd1342543de82ef95, N: uint64(i%7 + 1)}
	}
	return causal.MakeVector(dots...)
}

// fetching reports whether the replica fetches a base.
func (c *Core) fetching() bool {
	_, _, ok := c.bases.Fetching()
	return ok
}

// aged returns members with a common past, in sync. The named ones do not know the base of the
// others.
func aged(t *testing.T, past causal.Vector, without ...string) *lab {
	l := newLab(t, "a", "b", "c")
	for _, n := range l.order {
		c := l.cores[n]
		joins(c, history.State{Seen: past})
		if slices.Contains(without, n) {
			c.bases.Set = bases.Set[Receive]{}
		} else {
			c.bases.Use(c.now, past, c.Seen())
		}
	}
	return l
}

// A push that names an unknown base waits for the base, and is not lost [R39].
func TestBase_AnUnknownOneIsAskedForWhileTheMessageWaits(t *testing.T) {
	l := aged(t, departed(1000), "b")
	l.update("a", Level{}, add("s", "x")) // the first push names everything that it follows
	l.deliver(of(wire.ReplicatorPush))
	l.shows("b", "")
	require.EqualValues(t, 1, l.cores["b"].Stats().Awaiting)
	for l.cores["b"].fetching() {
		l.deliver(of(wire.ReplicatorBaseRequest))
		l.deliver(of(wire.ReplicatorBase))
	}
	l.shows("b", "s/x=1\n")
	require.EqualValues(t, 1, l.cores["b"].Stats().Bases)
	require.Equal(t, l.cores["a"].bases.Own().Name(), l.cores["b"].bases.Own().Name(), "b goes over to it")
	l.update("a", Level{}, op{kind: opDelete, key: "s"}) // sends the vector again
	l.deliver(of(wire.ReplicatorPush))
	l.shows("b", "")
	require.EqualValues(t, 1, l.cores["b"].Stats().Awaiting)
}

// A base is accepted only if its digest is the requested one [R39].
func TestBase_AForgedOneIsRefused(t *testing.T) {
	l := aged(t, departed(1000), "b")
	l.update("a", Level{}, add("s", "x"))
	l.update("a", Level{}, op{kind: opDelete, key: "s"})
	l.deliver(of(wire.ReplicatorPush))
	l.deliver(of(wire.ReplicatorBaseRequest))
	b := l.cores["b"]
	for part := 0; b.fetching(); part++ {
		for _, m := range l.take(of(wire.ReplicatorBase)) {
			if part == 5 {
				m.send.Payload, _ = forge(m.send.Payload)
			}
			l.hand(m)
		}
		l.deliver(of(wire.ReplicatorBaseRequest))
	}
	require.EqualValues(t, 1, b.Stats().Malformed)
	require.Zero(t, b.Stats().Bases)
	require.Zero(t, b.bases.Len())
	l.pass(10 * time.Second)
	l.shows("b", "")
	require.True(t, b.Seen().Equal(l.cores["a"].Seen()))
}

// Lost parts of a base are requested again, from where the transfer stopped. A base that differs
// little from a known one is sent as the difference.
func TestBase_ALostPartIsAskedForAgain(t *testing.T) {
	l := aged(t, departed(1000), "b") // a part has 12 entries
	a, b := l.cores["a"], l.cores["b"]
	l.update("a", Level{}, add("s", "x"))
	l.update("a", Level{}, op{kind: opDelete, key: "s"})
	l.deliver(of(wire.ReplicatorPush))
	parts := 0
	for i := 0; b.fetching() && i < 1000; i++ {
		l.deliver(of(wire.ReplicatorBaseRequest))
		for _, m := range l.take(of(wire.ReplicatorBase)) {
			parts++
			if parts%3 > 0 {
				l.hand(m)
			} else {
				l.wake(250*time.Millisecond, "b")
			}
		}
	}
	l.shows("b", "")
	require.InDelta(t, 1000/12*3/2, parts, 3, "each part was sent once, and the lost ones again")

	own := a.bases.Own().Vector()
	a.bases.Use(a.now, own.Set(4711, 1).Set(own.At(500).Replica, 0), a.Seen())
	l.update("a", Level{}, add("s", "y"), op{kind: opDelete, key: "s"})
	l.update("a", Level{}, add("s", "z"))
	l.update("a", Level{}, op{kind: opDelete, key: "s"})
	l.deliver(of(wire.ReplicatorPush))
	l.deliver(of(wire.ReplicatorBaseRequest))
	l.take(between("a", "c"))
	answer := l.take(of(wire.ReplicatorBase))
	require.Len(t, answer, 1)
	require.Less(t, len(answer[0].send.Payload), 130)
	l.hand(answer[0])
	l.shows("b", "")
	require.EqualValues(t, 2, b.Stats().Bases)
}

// Members that start with different bases converge on one [R38].
func TestBase_MembersComeToUseTheSame(t *testing.T) {
	l := aged(t, departed(300))
	for i := range 10 {
		name := l.order[i%3]
		l.update(name, Level{}, add("s", fmt.Sprint(i)))
		if c := l.cores[name]; i < 3 {
			c.bases.Set = bases.Set[Receive]{}
			c.bases.Use(c.now, c.Seen(), c.Seen()) // some of which still run
		}
		l.tick(time.Second)
	}
	require.Equal(t, l.cores["a"].bases.Own().Name(), l.cores["b"].bases.Own().Name())
	require.Equal(t, l.cores["a"].bases.Own().Name(), l.cores["c"].bases.Own().Name())
	require.Zero(t, l.cores["a"].bases.Waiting())
}

// However often members are restarted, the size of their messages stays the same: the base absorbs
// departed replicas [R38].
func TestBase_TakesInWhatHasGone(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	largest := 0
	for i := range 150 {
		name := l.order[i%3]
		l.start(name)
		l.meet()
		l.update(name, majority, add("s", fmt.Sprint(i)))
		l.tick(time.Second)
		for n, c := range l.cores {
			_, told, _ := c.bases.Own().List(c.Seen())
			require.LessOrEqual(t, len(told), bases.Few, "%s after %d restarts", n, i)
			largest = max(largest, len(told))
		}
	}
	require.Equal(t, 150, l.cores["a"].Seen().Len())
	require.Greater(t, largest, bases.Few/2)
	for _, n := range l.order {
		_, told, _ := l.cores[n].bases.Own().List(l.cores[n].Seen())
		require.Less(t, len(told), 3+4, "%s tells the living and a few others", n)
		require.Equal(t, l.cores["a"].bases.Own().Name(), l.cores[n].bases.Own().Name())
	}
}

// The messages that wait for a base are bounded.
func TestBase_WhatWaitsIsBounded(t *testing.T) {
	l := newLab(t, "a", "b")
	a, b := l.cores["a"], l.cores["b"]
	for i := range 100 {
		name := bases.Of(departed(40 + i)).Name()
		payload := encode(&pb.Probe{Id: uint64(i), Want: &pb.VersionVector{Base: name}})
		l.step("b", Receive{Member: "a", From: a.Replica(), To: b.Replica(),
			Manifest: wire.ReplicatorProbe, Payload: payload})
	}
	require.Equal(t, b.cfg.WindowCount, b.bases.Waiting())
	l.tick(time.Minute)
	l.tick(time.Second)
	require.Zero(t, b.bases.Waiting())
	require.False(t, b.fetching())
	require.Zero(t, b.bases.Len())
	require.Zero(t, b.Stats().Malformed)
}

// With a hundred thousand past incarnations a member joins, and no message comes near its bound.
func TestBase_NewMemberAfterAHundredThousandRestarts(t *testing.T) {
	l := aged(t, departed(100_000))
	l.update("a", Level{}, add("s", "x"))
	l.tick(time.Second)
	for _, c := range l.cores {
		c.bases.part = 12_000 // entries, as with parts of 64 KiB
		require.Zero(t, c.Stats().Malformed)
	}
	l.start("c")
	l.cores["c"].bases.part = 12_000
	largest := 0
	for i := 0; i < 400 && !l.cores["c"].Ready(); i++ {
		if i == 0 {
			l.seeAll(l.order...)
		}
		mails := l.take(all)
		l.now = l.now.Add(time.Millisecond)
		for _, m := range mails {
			largest = max(largest, len(m.send.Payload))
			l.hand(m)
		}
		if len(mails) == 0 {
			l.wake(100*time.Millisecond, l.order...)
		}
	}
	require.True(t, l.cores["c"].Ready())
	require.Less(t, largest, wire.MaxPayload/2)
	l.shows("c", "s/x=1\n")
	require.Equal(t, l.cores["a"].bases.Own().Name(), l.cores["c"].bases.Own().Name())
	require.EqualValues(t, 1, l.cores["c"].Stats().Bases)
}
