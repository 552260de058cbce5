package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

// aged returns members with a common past, in sync. The named ones do not know the base of the
// others.
func aged(t *testing.T, past causal.Vector, without ...string) *lab {
	l := newLab(t, "a", "b", "c")
	for _, n := range l.order {
		c := l.cores[n]
		c.note(c.join(State{Seen: past}))
		if slices.Contains(without, n) {
			c.base, c.bases = base{}, nil
		} else {
			c.useBase(past)
		}
	}
	return l
}

// A vector decodes to itself, whichever base it is sent with [R37].
func TestBase_ToldAndReadIsTheSameVector(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) causal.Vector {
		var dots []causal.Dot
		for r := range rapid.IntRange(0, 60).Draw(t, "replicas") {
			dots = append(dots, causal.Dot{Replica: causal.Replica(r + 1),
				N: rapid.SampledFrom([]uint64{0, 1, 1, 1, 2}).Draw(t, "n")})
		}
		return causal.MakeVector(dots...)
	})
	rapid.Check(t, func(t *rapid.T) {
		b, v := baseOf(draw.Draw(t, "base")), draw.Draw(t, "vector")
		name, ids, numbers := b.list(v)
		require.LessOrEqual(t, len(ids), v.Len())
		got, err := makeVector(name, ids, numbers, func(n []byte) (causal.Vector, bool) {
			return b.vector, string(n) == string(b.digest[:])
		})
		require.NoError(t, err)
		require.True(t, v.Equal(got), "%v with %v is read as %v", v, b.vector, got)
	})
}

// A push that names an unknown base waits for the base, and is not lost [R39].
func TestBase_AnUnknownOneIsAskedForWhileTheMessageWaits(t *testing.T) {
	l := aged(t, departed(1000), "b")
	l.update("a", Level{}, add("s", "x")) // the first push names everything that it follows
	l.deliver(of(wire.ReplicatorPush))
	l.shows("b", "")
	require.EqualValues(t, 1, l.cores["b"].Stats().Awaiting)
	for l.cores["b"].fetch != nil {
		l.deliver(of(wire.ReplicatorBaseRequest))
		l.deliver(of(wire.ReplicatorBase))
	}
	l.shows("b", "s/x=1\n")
	require.EqualValues(t, 1, l.cores["b"].Stats().Bases)
	require.Equal(t, l.cores["a"].base.digest, l.cores["b"].base.digest, "b goes over to it")
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
	for part := 0; b.fetch != nil; part++ {
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
	require.Empty(t, b.bases)
	for range 10 {
		l.tick(time.Second)
	}
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
	for i := 0; b.fetch != nil && i < 1000; i++ {
		l.deliver(of(wire.ReplicatorBaseRequest))
		for _, m := range l.take(of(wire.ReplicatorBase)) {
			parts++
			if parts%3 > 0 {
				l.hand(m)
			} else {
				l.now = l.now.Add(250 * time.Millisecond)
				l.step("b", Wake{})
			}
		}
	}
	l.shows("b", "")
	require.InDelta(t, 1000/12*3/2, parts, 3, "each part was sent once, and the lost ones again")

	a.useBase(a.base.vector.Set(4711, 1).Set(a.base.vector.At(500).Replica, 0))
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
			c.base, c.bases = base{}, nil
			c.useBase(c.seen) // some of which still run
		}
		l.tick(time.Second)
	}
	require.Equal(t, l.cores["a"].base.digest, l.cores["b"].base.digest)
	require.Equal(t, l.cores["a"].base.digest, l.cores["c"].base.digest)
	require.Empty(t, l.cores["a"].awaiting)
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
			_, told, _ := c.base.list(c.seen)
			require.LessOrEqual(t, len(told), fewReplicas, "%s after %d restarts", n, i)
			largest = max(largest, len(told))
		}
	}
	require.Equal(t, 150, l.cores["a"].seen.Len())
	require.Greater(t, largest, fewReplicas/2)
	for _, n := range l.order {
		_, told, _ := l.cores[n].base.list(l.cores[n].seen)
		require.Less(t, len(told), 3+renewAfter, "%s tells the living and a few others", n)
		require.Equal(t, l.cores["a"].base.digest, l.cores[n].base.digest)
	}
}

// The messages that wait for a base are bounded, and so are the stored bases.
func TestBase_WhatWaitsIsBounded(t *testing.T) {
	l := newLab(t, "a", "b")
	a, b := l.cores["a"], l.cores["b"]
	for i := range 100 {
		name := baseOf(departed(40 + i)).name()
		payload := encode(&pb.Probe{Id: uint64(i), Want: &pb.VersionVector{Base: name}})
		l.step("b", Receive{Member: "a", From: a.Replica(), To: b.Replica(),
			Manifest: wire.ReplicatorProbe, Payload: payload})
	}
	require.Len(t, b.awaiting, b.cfg.WindowCount)
	for i := range 100 {
		b.learn(baseOf(departed(40 + i)))
	}
	require.LessOrEqual(t, len(b.bases), maxBases)
	l.tick(time.Minute)
	l.tick(time.Second)
	require.Empty(t, b.awaiting)
	require.Nil(t, b.fetch)
	require.Empty(t, b.bases)
	require.Zero(t, b.Stats().Malformed)
}

// With a hundred thousand past incarnations a member joins, and no message comes near its bound.
func TestBase_ANewcomerAfterAHundredThousandRestarts(t *testing.T) {
	l := aged(t, departed(100_000))
	l.update("a", Level{}, add("s", "x"))
	l.tick(time.Second)
	for _, c := range l.cores {
		c.cfg.PartBytes = 64 << 10
		require.Zero(t, c.Stats().Malformed)
	}
	l.start("c")
	l.cores["c"].cfg.PartBytes = 64 << 10
	largest := 0
	for i := 0; i < 400 && !l.cores["c"].Ready(); i++ {
		if i == 0 {
			for _, n := range l.order {
				var others []Member
				for _, o := range l.order {
					if o != n {
						others = append(others, Member{ID: o})
					}
				}
				l.step(n, View{Others: others})
			}
		}
		mails := l.take(all)
		l.now = l.now.Add(time.Millisecond)
		for _, m := range mails {
			largest = max(largest, len(m.send.Payload))
			l.hand(m)
		}
		if len(mails) == 0 {
			l.now = l.now.Add(100 * time.Millisecond)
			for _, n := range l.order {
				l.step(n, Wake{})
			}
		}
	}
	require.True(t, l.cores["c"].Ready())
	require.Less(t, largest, wire.MaxPayload/2)
	l.shows("c", "s/x=1\n")
	require.Equal(t, l.cores["a"].base.digest, l.cores["c"].base.digest)
	require.EqualValues(t, 1, l.cores["c"].Stats().Bases)
}
