package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// The last event that a restored replica has in common with another is the last one that the other
// has acknowledged or sent the same print of, unless it has sent a different print.
func TestRestored_TheLastCommonEvent(t *testing.T) {
	c := New(Config{NewReplica: func() causal.Replica { return 5 }})
	c.prints = ownPrints{of: []imprint{0, 1, 3, 5}}
	c.seen = causal.MakeVector(causal.Dot{Replica: 5, N: 3})
	for _, test := range []struct {
		acked  uint64
		its    heardPrints
		common uint64
	}{
		{0, heardPrints{}, 0},
		{2, heardPrints{n: 9}, 2},
		{9, heardPrints{n: 9}, 3},
		{0, heardPrints{4, []imprint{1, 3, 5, 7}}, 3},
		{0, heardPrints{4, []imprint{1, 3, 9, 11}}, 2},
		{3, heardPrints{4, []imprint{1, 3, 9, 11}}, 2}, // it had acknowledged the third
		{3, heardPrints{4, []imprint{9, 11, 13}}, 1},
		{3, heardPrints{5, []imprint{7, 9}}, 3}, // its prints do not say
	} {
		require.Equal(t, test.common, c.common(test.acked, test.its), "%+v", test)
	}
}

// An event from before the snapshot has reached all members, and no acknowledgement has come back.
// A heartbeat shows the restored replica that its numbers were used, but contains only the last
// print. So the replica assumes that the others do not have this event, until the state arrives.
// The event is not redone, and what others have removed of it since stays removed.
func TestRestored_AnEventThatOthersHaveIsNotDoneTwice(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", majority, add("s", "base"))
	l.settled(l.id)
	l.update("a", Level{}, add("s", "gone"), add("s", "kept"), count("c2", "n", 5))
	l.deliver(of(wire.ReplicatorPush))
	l.take(of(wire.ReplicatorAck))
	l.update("b", Level{}, remove("s", "gone"))
	l.deliver(between("b", "c"))
	l.take(between("b", "a"))
	snapshot := frozen(l.cores["a"])
	l.now = l.now.Add(time.Millisecond)
	l.update("a", Level{}, add("s", "old"))
	l.deliver(between("a", "b"))
	l.take(all)
	l.cores["a"] = snapshot
	l.act("new")
	l.deliver(between("a", "c"))
	l.take(all)

	l.beatOut("b", "a")
	l.deliver(between("b", "a"))
	v := l.cores["a"].revoked
	require.NotNil(t, v)
	require.Equal(t, uint64(1), v.common, "nobody has acknowledged the second event")
	l.settled()
	for _, n := range l.order {
		l.shows(n, "c2/n=5\ns/base=1\ns/kept=1\ns/new=1\ns/old=1\n")
	}
}

// The same where the restored replica has done nothing since: a member that has all of its events,
// and more, has the other events.
func TestRestored_AMemberThatHasMoreHasTheOtherEvents(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("a", Level{}, count("c2", "n", 5))
	l.deliver(of(wire.ReplicatorPush))
	l.take(all)
	snapshot := frozen(l.cores["a"])
	l.update("a", Level{}, count("c2", "n", 7))
	l.deliver(between("a", "b"))
	l.take(all)
	l.cores["a"] = snapshot
	l.beatOut("b", "a")
	l.deliver(between("b", "a"))
	require.NotNil(t, l.cores["a"].revoked)
	l.settled()
	for _, n := range l.order {
		l.shows(n, "c2/n=12\n")
	}
}
