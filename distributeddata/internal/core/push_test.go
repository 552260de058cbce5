package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/outbox"
	"github.com/concord-go/concord/internal/wire"
)

// A hundred increments are a hundred events with a hundred dots, since each value could have been
// encoded. What is sent is one atom.
func TestPush_AHundredAnsweredIncrementsAreOneAtom(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	size := func() int {
		pushes := l.take(of(wire.ReplicatorPush))
		require.Len(t, pushes, 2)
		l.hand(pushes...)
		return len(pushes[0].send.Payload)
	}
	l.update("a", Level{}, count("c", "k", 1))
	one := size()
	l.deliver(all)
	for range 100 {
		l.answered("a", count("c", "k", 1))
	}
	l.step("a", Wake{})
	require.LessOrEqual(t, size(), 2*one+99*6,
		"an event that says nothing takes two bytes, and its hash four")
	l.shows("b", "c/k=101\n")
	require.EqualValues(t, 101, l.cores["a"].Stats().Events)
	require.Equal(t, stateBytes(l.cores["a"]), stateBytes(l.cores["b"]))
}

func TestPush_WhatCameAndWentDoesNotTravel(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "kept"), count("c", "k", 5))
	l.deliver(all)
	l.answered("a", add("s", "x"), count("c", "k", 1), count("c", "m", 1))
	l.answered("a", remove("s", "x"), remove("s", "kept"), drop("c", "k"))
	l.answered("a", add("s", "y"), count("c", "k", 2), op{kind: opDelete, key: "s1"})
	l.answered("a", drop("c", "m"), add("s1", "z"))
	l.answered("a", op{kind: opDelete, key: "s1"})
	l.step("a", Wake{})
	l.deliver(all)
	l.shows("b", "c/k=2\ns/y=1\n")
	require.Equal(t, stateBytes(l.cores["a"]), stateBytes(l.cores["b"]))
	own, _ := l.cores["b"].history.Events(l.cores["a"].Replica(), 2)
	require.Len(t, own, 5)
	require.Len(t, own[0].Keys, 1)
	require.Empty(t, own[0].Keys[0].Adds, "all that it added is gone")
}

// The receiver has the first events of a push, which never happens in practice. The push leaves out
// that x is removed.
func TestPush_OfWhichSomeIsThereIsOfNoUse(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"))
	l.deliver(all)
	a := l.cores["a"]
	l.answered("a", remove("s", "x"))
	own, ok := a.history.Events(a.Replica(), 1)
	require.True(t, ok)
	d := a.outbox.delta(a.herald(), own, 0, 2)
	payload := encodePush(&d, a.Replica(), a.Keys())
	l.hand(mail{from: "a", to: "b", replica: a.Replica(), send: Send{Member: "b",
		To: l.cores["b"].Replica(), Manifest: wire.ReplicatorPush, Payload: payload}})
	require.EqualValues(t, 1, l.cores["b"].Seen().Get(a.Replica()))
	l.pass(3 * time.Second)
	l.shows("b", "")
	require.Equal(t, stateBytes(a), stateBytes(l.cores["b"]))
}

// Nothing waits at rest. Under load other members receive updates once per millisecond, and those
// with a waiter at once.
func TestPush_PausesUnderLoad(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	for range outbox.Few + 1 {
		l.answered("a", count("c", "k", 1))
	}
	require.Equal(t, l.now, l.cores["a"].NextWake())
	l.step("a", Wake{})
	pushes := l.take(of(wire.ReplicatorPush))
	require.Len(t, pushes, 2)
	l.hand(pushes...)
	l.answered("a", count("c", "k", 1))
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake())
	l.deliver(of(wire.ReplicatorAck))
	require.Empty(t, l.take(of(wire.ReplicatorPush)), "an acknowledgement hurries nothing")
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake())
	l.begin("a", majority, add("s", "x"))
	require.Equal(t, l.now, l.cores["a"].NextWake())
	l.step("a", Wake{})
	require.Len(t, l.take(of(wire.ReplicatorPush)), 2)
	require.Equal(t, l.cores["a"].rhythm.at, l.cores["a"].NextWake(), "nothing left to push")
}

// An update that follows a single one waits until all members have acknowledged that, or a
// millisecond.
func TestPush_FollowsAnAcknowledgedOne(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.answered("a", count("c", "k", 1))
	l.step("a", Wake{})
	l.answered("a", count("c", "k", 1))
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake(), "nobody has the first")
	l.deliver(func(m mail) bool { return m.to != "c" })
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake(),
		"c does not have the first")
	l.deliver(all)
	require.Equal(t, l.now, l.cores["a"].NextWake())
	l.step("a", Wake{})
	require.Len(t, l.take(of(wire.ReplicatorPush)), 2)
}

// A member that is alone does not act after each update.
func TestPush_ToNobodyPauses(t *testing.T) {
	l := newLab(t, "a")
	l.answered("a", count("c", "k", 1))
	l.step("a", Wake{})
	l.answered("a", count("c", "k", 1))
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake())
}

// Two calls in turn do not wait for each other. A third waits until one of the two pushes is
// confirmed, or a millisecond, so that many calls share a push.
func TestPush_CallsShareOneWhileTwoAreOnTheirWay(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	a := l.cores["a"]
	for range 2 {
		l.begin("a", majority, count("c", "k", 1))
		require.Equal(t, l.now, a.NextWake())
		l.step("a", Wake{})
	}
	first := l.take(of(wire.ReplicatorPush))
	require.Len(t, first, 4)
	third, fourth := l.begin("a", majority, count("c", "k", 1)),
		l.begin("a", majority, count("c", "k", 1))
	require.Equal(t, l.now.Add(outbox.Pause), a.NextWake())
	for _, m := range first[:2] { // the first push
		l.hand(m)
	}
	l.deliver(func(m mail) bool { return m.from == "b" })
	require.Contains(t, l.done, uint64(1))
	require.NotContains(t, l.done, uint64(2))
	require.Equal(t, l.now, a.NextWake())
	l.step("a", Wake{})
	require.Len(t, l.take(of(wire.ReplicatorPush)), 2, "one push for two calls")
	l.begin("a", majority, count("c", "k", 1))
	require.Equal(t, l.now.Add(outbox.Pause), a.NextWake(), "the second push is not confirmed")
	l.wake(outbox.Pause, "a")
	require.Len(t, l.take(of(wire.ReplicatorPush)), 2, "a lost push delays others by a millisecond")
	l.pass(3 * time.Second)
	require.Contains(t, l.done, third)
	require.Contains(t, l.done, fourth)
}

// C is cut off. Calls at all replicas wait for it; calls at a majority do not wait for those.
func TestPush_CallsThatCannotEndDelayNoOtherLevel(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	every := Level{Kind: All}
	for range 3 {
		l.begin("a", every, count("c", "k", 1))
		l.wake(outbox.Pause, "a")
		l.take(func(m mail) bool { return m.to == "c" })
		l.deliver(of(wire.ReplicatorPush))
		l.deliver(all)
	}
	l.begin("a", every, count("c", "k", 1))
	require.Equal(t, l.now.Add(outbox.Pause), l.cores["a"].NextWake())
	l.begin("a", majority, count("c", "k", 1))
	require.Equal(t, l.now, l.cores["a"].NextWake())
}

// An update that changes nothing waits for what it has observed, which may not have been pushed.
func TestPush_HurriesForAnUpdateThatChangesNothing(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "y"))
	l.deliver(all)
	for range outbox.Few + 1 {
		l.answered("a", add("s", "x"))
	}
	l.step("a", Wake{})
	l.deliver(all)
	l.answered("a", add("s", "z"))
	require.Equal(t, l.now.Add(outbox.Pause), l.cores["a"].NextWake())
	l.begin("a", majority)
	require.Equal(t, l.now, l.cores["a"].NextWake())
}

// Sixty-four callers increment a counter at a majority, each again as soon as it is answered. The
// messages arrive one by one, in the order in which they were sent, and whatever is due happens at
// once: no call waits for another one before it.
func TestCost_MajorityWritesOfManyCallers(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	const callers, calls = 64, 6400
	bytes, messages, begun := 0, 0, 0
	begin := func() {
		l.begin("a", majority, count("c", "k", 1))
		begun++
		if !l.cores["a"].NextWake().After(l.now) {
			l.step("a", Wake{})
		}
	}
	for range callers {
		begin()
	}
	for len(l.done) < calls {
		require.NotEmpty(t, l.box)
		m := l.box[0]
		l.box = l.box[1:]
		messages, bytes = messages+1, bytes+len(m.send.Payload)
		before := len(l.done)
		l.hand(m)
		if !l.cores["a"].NextWake().After(l.now) {
			l.step("a", Wake{})
		}
		for range min(len(l.done)-before, calls-begun) {
			begin()
		}
	}
	t.Logf("%.2f messages and %.1f bytes a call", float64(messages)/calls, float64(bytes)/calls)
	require.LessOrEqual(t, float64(messages)/calls, 0.25)
	require.LessOrEqual(t, float64(bytes)/calls, 25.0)
}

// A hundred counters are incremented in turn, each call is answered. What travels of an event are
// its key, as far as it differs from that before, the new atom, and four bytes of hash.
func TestCost_AnsweredUpdatesOfManyKeys(t *testing.T) {
	for _, c := range []struct {
		name  string
		op    func(i int) op
		bytes float64
	}{
		{"counter", func(int) op { return count("counter", "k", 1) }, 38},
		{"set", func(i int) op { return add("set", fmt.Sprint(i/100)) }, 25},
	} {
		l := newLab(t, "a", "b", "c")
		bytes := 0
		for i := range 300 {
			o := c.op(i)
			o.key += fmt.Sprintf("-%03d", i%100)
			l.answered("a", o)
			if i%50 < 49 {
				continue
			}
			l.step("a", Wake{})
			pushes := l.take(of(wire.ReplicatorPush))
			if i >= 100 {
				bytes += len(pushes[0].send.Payload)
			}
			l.hand(pushes...)
			l.deliver(all)
		}
		t.Logf("%s: %.1f bytes a call", c.name, float64(bytes)/200)
		require.LessOrEqual(t, float64(bytes)/200, c.bytes, c.name)
	}
}
