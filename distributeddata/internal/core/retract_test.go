package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// forked plays a replica a that makes a write which b acknowledges and c does not receive. Then a
// is replaced by an earlier snapshot of its machine, whose first write, of the given ops, reaches c
// before b. When forked returns, a knows that b has other events, and has not asked b for its state
// yet.
func forked(t *testing.T, ops ...op) (l *lab, was causal.Replica, write uint64) {
	l = newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	snapshot := frozen(l.cores["a"])
	first := l.update("a", majority, add("s", "old"))
	l.take(between("a", "c"))
	l.deliver(all)
	require.Nil(t, l.done[first].Short)
	l.cores["a"] = snapshot
	write = l.update("a", majority, ops...)
	l.deliver(between("a", "c"))
	l.shows("c", "c/n=5\ns/base=1\ns/new=1\n")
	was = snapshot.Replica()
	l.deliver(between("a", "b"))
	l.deliver(between("b", "a"))
	require.NotEqual(t, was, l.cores["a"].Replica())
	l.take(between("c", "a"))
	l.take(between("c", "b"))
	return l, was, write
}

var forking = []op{add("s", "new"), count("c", "n", 5)}

// apart advances the time by seconds in which nothing passes between two members.
func (l *lab) apart(a, b string, seconds int) {
	for range seconds {
		l.now = l.now.Add(time.Second)
		for _, n := range l.order {
			l.step(n, Wake{})
		}
		for range 20 {
			l.take(between(a, b))
			l.take(between(b, a))
			l.deliver(all)
		}
	}
}

// The member that has the events of the restored replica gives them up when it hears that they have
// been redone: nothing is lost, and nothing counts twice.
func TestRetract_TheOtherSideGivesItsEventsUp(t *testing.T) {
	l, _, write := forked(t, forking...)
	l.settled(write)
	for _, n := range l.order {
		l.shows(n, "c/n=5\ns/base=1\ns/new=1\ns/old=1\n")
		require.Len(t, l.cores[n].retracted, 1)
	}
}

// It does so although no member lacks an event by number. Before, fingerprints decided, and a
// majority removed what the other side had acknowledged.
func TestRetract_AnAnswerOfTheOtherSideRemovesNothing(t *testing.T) {
	l, _, write := forked(t, forking...)
	l.update("c", Level{}, add("s2", "own"))
	l.take(between("c", "a"))
	l.take(between("c", "b")) // b has to ask
	l.cutLogs("c")
	l.apart("a", "c", 4)
	l.shows("b", "c/n=5\ns/base=1\ns/new=1\ns/old=1\n")
	l.settled(write)
	for _, n := range l.order {
		l.shows(n, "c/n=5\ns/base=1\ns/new=1\ns/old=1\ns2/own=1\n")
	}
}

// While the origin of the events can still be told, an answer from another history is refused by
// prints alone, before anything has been retracted.
func TestRetract_AnAnswerOfAnotherHistoryIsRefused(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	snapshot := frozen(l.cores["a"])
	l.update("a", majority, add("s", "old"))
	l.take(between("a", "c"))
	l.deliver(all)
	l.cores["a"] = snapshot
	l.update("a", Level{}, forking...)
	l.step("a", Wake{})
	l.take(between("a", "b"))
	l.deliver(between("a", "c"))
	l.take(all)
	l.update("c", Level{}, add("s2", "own"))
	l.cutLogs("c")
	b := l.cores["b"]
	l.take(all)
	b.request(b.peer("c"))
	require.NotNil(t, b.incoming)
	l.now = l.now.Add(b.cfg.Grace) // it is sent again then
	l.step("b", Wake{})
	for range 10 {
		l.deliver(between("b", "c"))
		l.deliver(between("c", "b"))
	}
	require.Nil(t, b.incoming)
	require.Positive(t, b.Stats().Forks)
	l.shows("b", "s/base=1\ns/old=1\n")
	require.True(t, slices.ContainsFunc(l.box, func(m mail) bool {
		told, err := decodeAck(m.send.Payload)
		return between("b", "a")(m) && m.send.Manifest == wire.ReplicatorAck && err == nil &&
			told.of == "c"
	}), "a is told what c has, too")
	l.settled()
	for _, n := range l.order {
		l.shows(n, "c/n=5\ns/base=1\ns/new=1\ns/old=1\ns2/own=1\n")
	}
}

// Replicas that ran for members until recently are known for a while, and only a bounded number of
// them.
func TestFormers_AreBounded(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	a, c := l.cores["a"], l.cores["c"].me
	l.cores["c"] = nil
	l.start("c")
	l.meet()
	require.Equal(t, c, a.formers[0].replica)
	for r := range causal.Replica(2 * maxFormers) {
		a.replaced(1000 + r)
	}
	require.Len(t, a.formers, maxFormers)
	for range 2*forkBeats + 1 {
		l.tick(time.Second)
	}
	require.Empty(t, a.formers)
}

// The next life of a process sees no peers at first. The replicas that the life before it saw are
// former replicas to it, so that their prints are still sent: a peer may have been restored.
func TestFormers_ArePeersOfTheLifeBefore(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	a, c := l.cores["a"].me, l.cores["c"].me
	l.again("b")
	l.now = l.now.Add(time.Hour) // the clock is set
	b := l.cores["b"]
	b.roll.memory = memory{} // which may name earlier processes
	require.Contains(t, b.printsOut(causal.Vector{}), a)
	require.Len(t, b.formers, 2)
	require.True(t, slices.ContainsFunc(b.formers, func(f former) bool { return f.replica == c }))
	for range 2 * forkBeats {
		l.now = l.now.Add(time.Second)
		l.step("b", Wake{})
	}
	require.Len(t, b.formers, 2)
	for range 2 {
		l.now = l.now.Add(time.Second)
		l.step("b", Wake{})
	}
	require.Empty(t, b.formers)
}

// A retraction of a running replica, of the receiver, or of an unknown replica changes nothing. One
// that is too long is rejected. The stored retractions do not grow without bound.
func TestRetract_WhatIsNotTaken(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	a, b := l.cores["a"], l.cores["b"]
	tell := func(m *pb.Retract) {
		l.step("b", Receive{Member: "a", From: a.me, To: b.me, Manifest: wire.ReplicatorRetract,
			Payload: encode(m)})
	}
	last := b.heardOf[a.me].at(1)
	require.NotZero(t, last)
	for _, r := range []causal.Replica{0, b.me, a.me, l.cores["c"].me} {
		tell(&pb.Retract{Replica: uint64(r), Prints: []uint32{last}})
		require.Empty(t, b.retracted)
		require.Nil(t, b.revoked)
	}
	l.take(all)
	for i := range 3 * maxRetractions {
		tell(&pb.Retract{Replica: uint64(1000 + i), After: 7, Prints: []uint32{last}})
		require.Nil(t, b.revoked)
		require.Len(t, l.take(between("b", "a")), 1, "it says that it has none")
	}
	require.Len(t, b.retracted, maxRetractions)
	require.Zero(t, b.Stats().Malformed)
	tell(&pb.Retract{Replica: 5, Prints: make([]uint32, maxRetractedPrint)})
	require.Zero(t, b.Stats().Malformed)
	tell(&pb.Retract{Replica: 6, Prints: make([]uint32, maxRetractedPrint+1)})
	require.EqualValues(t, 1, b.Stats().Malformed)
	for i := range 3 * maxRetractions {
		tell(&pb.Retract{Replica: uint64(2000 + i)})
		tell(&pb.Retract{Replica: uint64(2000 + i), None: true})
	}
	require.Len(t, b.peer("a").cleared, maxRetractions)
	l.shows("b", "s/base=1\n")
}

// If the log of the origin has been dropped, it still begins where the vector ends.
func TestRetract_ALogThatHasLetGoOfTheOrigin(t *testing.T) {
	l := newEventLog()
	l.floor = causal.MakeVector(causal.Dot{Replica: 7, N: 5})
	l.revoke(7, 3)
	require.EqualValues(t, 3, l.floor.Get(7))
	l.revoke(7, 4)
	require.EqualValues(t, 3, l.floor.Get(7))
}

// The same if the log drops the origin afterwards.
func TestRetract_ALogThatLetsGoOfTheOriginLater(t *testing.T) {
	l := newEventLog()
	l.add(event{dot: causal.Dot{Replica: 7, N: 1}})
	before := causal.MakeVector(causal.Dot{Replica: 7, N: 1})
	l.skip(causal.MakeVector(causal.Dot{Replica: 7, N: 5}), before)
	l.revoke(7, 3)
	l.retire(func(causal.Replica) bool { return true })
	require.EqualValues(t, 3, l.floor.Get(7))
}

// A retraction names the events after the last one that both histories have, whatever is known of
// them.
func TestRetract_WhereTheHistoriesPart(t *testing.T) {
	prints := func(xs ...imprint) ownPrints { return ownPrints{of: append([]imprint{0}, xs...)} }
	tests := []struct {
		mine   ownPrints
		own    uint64
		common uint64 // the last event known to be common
		theirs heardPrints
		want   string
	}{
		{prints(1, 3, 5), 3, 1, heardPrints{3, []imprint{1, 3, 7}}, "behind 2: [5]"},
		{prints(1, 3, 5), 3, 1, heardPrints{4, []imprint{1, 9, 11, 13}}, "behind 1: [3 5]"},
		// 1 is common, as was known
		{prints(1, 3, 5), 3, 1, heardPrints{4, []imprint{9, 11, 13}}, "behind 1: [3 5]"},
		{prints(1, 3, 5), 3, 0, heardPrints{4, []imprint{9, 11, 13}}, "nothing"},
		{prints(1, 3, 5), 3, 0, heardPrints{2, []imprint{1, 9}}, "behind 1: [3 5]"},
		// they have these events
		{prints(1, 3, 5), 3, 0, heardPrints{5, []imprint{1, 3, 5, 7, 9}}, "nothing"},
		{prints(1, 3, 5), 3, 0, heardPrints{2, []imprint{1, 3}}, "nothing"},
		{prints(1, 3, 5), 3, 2, heardPrints{}, "nothing"},
		{prints(1, 3), 2, 0, heardPrints{2, []imprint{5, 7}}, "behind 0: [1 3]"},
	}
	for i, test := range tests {
		c := New(Config{NewReplica: func() causal.Replica { return 5 }})
		c.retract(&revoked{was: 7, own: test.own, common: test.common, prints: test.mine},
			test.theirs)
		got := "nothing"
		for _, r := range c.retracted {
			require.EqualValues(t, 7, r.replica)
			got = fmt.Sprintf("behind %d: %v", r.after, r.prints)
		}
		require.Equal(t, test.want, got, "%d", i)
	}
}
