//go:build unix

package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// The size of messages does not grow with the number of members [R8, R25].

// pushed returns the newest push in the box from one member to another.
func (l *lab) pushed(from, to string) *pb.Push {
	l.t.Helper()
	var last *pb.Push
	for _, m := range l.box {
		if m.from == from && m.to == to && m.send.Manifest == wire.ReplicatorPush {
			last = &pb.Push{}
			require.NoError(l.t, decode(m.send.Payload, last))
		}
	}
	require.NotNil(l.t, last, "no push from %s to %s", from, to)
	return last
}

func TestPush_NamesTheNearestEventsAlone(t *testing.T) {
	l := newLab(t, "a", "b", "c", "d")
	for _, n := range l.order {
		l.update(n, Level{}, add("s", "own "+n))
		l.deliver(all)
	}
	l.update("a", Level{}, add("s", "x"))
	l.deliver(between("a", "b"))
	l.deliver(between("a", "c"))
	l.update("b", Level{}, remove("s", "x")) // follows a's event
	l.deliver(between("b", "c"))
	l.update("c", Level{}, add("s", "x")) // follows b's event, and so a's
	require.Equal(t, []uint64{uint64(l.cores["b"].Replica())}, l.pushed("c", "d").Replicas)

	l.deliver(between("c", "d"))
	l.shows("d", "s/own a=1\ns/own b=1\ns/own c=1\ns/own d=1\n") // waits for b's event
	l.deliver(between("b", "d"))
	l.shows("d", "s/own a=1\ns/own b=1\ns/own c=1\ns/own d=1\n") // which waits for a's event
	l.deliver(all)
	l.shows("d", "s/own a=1\ns/own b=1\ns/own c=1\ns/own d=1\ns/x=1\n")
}

func TestPush_ConcurrentEventsAreNamedEach(t *testing.T) {
	l := newLab(t, "a", "b", "c", "d")
	for _, n := range l.order {
		l.update(n, Level{}, add("s", "own "+n))
		l.deliver(all)
	}
	l.update("a", Level{}, add("s", "x"))
	l.update("b", Level{}, add("s", "y"))
	l.deliver(between("a", "c"))
	l.deliver(between("b", "c"))
	l.update("c", Level{}, remove("s", "x"), remove("s", "y"))
	require.Len(t, l.pushed("c", "d").Replicas, 2)
	l.deliver(between("c", "d"))
	l.deliver(between("b", "d"))
	require.Zero(t, l.cores["d"].Seen().Get(l.cores["c"].Replica())-1, "waits for a's")
	l.deliver(all)
	l.shows("d", "s/own a=1\ns/own b=1\ns/own c=1\ns/own d=1\n")
}

func TestBeat_AnUpdateIsNotFollowedByTheVectorToEverybody(t *testing.T) {
	for _, members := range []int{10, 40} {
		f := newFleet(members, 10)
		before, began := f.all(), f.now
		f.pass(10 * time.Second)
		idle := f.since(before)
		seconds := f.now.Sub(began).Seconds()
		idle.messages, idle.bytes = idle.messages/seconds, idle.bytes/seconds
		require.LessOrEqual(t, idle.messages, 3*float64(members), "at rest")

		before, began = f.all(), f.now
		f.update(0, "own0")
		f.rest()
		spent, others := f.since(before).less(idle, f.now.Sub(began)), float64(members-1)
		require.True(t, f.equal())
		require.LessOrEqual(t, spent.messages/others, 2.3,
			"%d members: the push and its acknowledgement", members)
		require.LessOrEqual(t, spent.bytes/others, 120., "%d members", members)
	}
}

func TestBeat_WhoHasNotSeenTheSameAsks(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"))
	l.take(of(wire.ReplicatorPush))
	l.beat("a")
	l.shows("b", "")
	l.deliver(all)
	l.shows("b", "s/x=1\n")
	require.True(t, l.now.Before(l.cores["a"].rhythm.unlike), "the next are told whole")
}

func TestBeat_WhoIsKnownToLackSomethingIsTold(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"))
	l.beat("a")
	l.take(all)         // the push and the heartbeat are lost
	l.step("b", Wake{}) // a knows the vector that the digest stands for
	l.deliver(all)
	l.shows("b", "s/x=1\n")
}
