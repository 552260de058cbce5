package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
)

// answered makes an update that is answered at once.
func (l *lab) answered(name string, ops ...op) {
	l.id++
	l.step(name, Update{ID: l.id, Modify: func(t *Txn) error { return perform(t, ops) }})
}

// A hundred increments are a hundred events with a hundred dots, since each value could have been
// encoded. What is sent is one atom.
func TestPush_AHundredAnsweredIncrementsAreOneAtom(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	size := func() int {
		pushes := l.take(of(wire.ReplicatorPush))
		require.Len(t, pushes, 2)
		for _, m := range pushes {
			l.hand(m)
		}
		return len(pushes[0].send.Payload)
	}
	l.update("a", Level{}, count("c", "k", 1))
	one := size()
	l.deliver(all)
	for range 100 {
		l.answered("a", count("c", "k", 1))
	}
	l.step("a", Wake{})
	require.LessOrEqual(t, size(), 2*one+99*6, "an event that says nothing takes two bytes, and its print four")
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
	own, _ := l.cores["b"].log.from(l.cores["a"].me, 2)
	require.Len(t, own, 5)
	require.Len(t, own[0].keys, 1)
	require.Empty(t, own[0].keys[0].Adds, "all that it added is gone")
}

// The receiver has the first events of a push, which never happens in practice. The push leaves out
// that x is removed.
func TestPush_OfWhichSomeIsThereIsOfNoUse(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"))
	l.deliver(all)
	a := l.cores["a"]
	l.answered("a", remove("s", "x"))
	own, ok := a.log.from(a.me, 1)
	require.True(t, ok)
	d := a.pushOf(own, 0, 2)
	payload := encodePush(&d, a.me, a.keys)
	l.hand(mail{from: "a", to: "b", replica: a.me, send: Send{Member: "b", To: l.cores["b"].me, Manifest: wire.ReplicatorPush, Payload: payload}})
	require.EqualValues(t, 1, l.cores["b"].Seen().Get(a.me))
	for range 3 {
		l.tick(time.Second)
	}
	l.shows("b", "")
	require.Equal(t, stateBytes(a), stateBytes(l.cores["b"]))
}

// Nothing waits at rest. Under load other members receive updates once per millisecond, and those
// with a waiter at once.
func TestPush_PausesUnderLoad(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	for range fewEvents + 1 {
		l.answered("a", count("c", "k", 1))
	}
	require.Equal(t, l.now, l.cores["a"].NextWake())
	l.step("a", Wake{})
	pushes := l.take(of(wire.ReplicatorPush))
	require.Len(t, pushes, 2)
	for _, m := range pushes {
		l.hand(m)
	}
	l.answered("a", count("c", "k", 1))
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake())
	l.deliver(of(wire.ReplicatorAck))
	require.Empty(t, l.take(of(wire.ReplicatorPush)), "an acknowledgement hurries nothing")
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake())
	l.step("a", Update{ID: 99, Level: majority, Deadline: l.now.Add(time.Hour), Modify: func(t *Txn) error { return perform(t, []op{add("s", "x")}) }})
	require.Equal(t, l.now, l.cores["a"].NextWake())
	l.step("a", Wake{})
	require.Len(t, l.take(of(wire.ReplicatorPush)), 2)
	require.Equal(t, l.cores["a"].beatAt, l.cores["a"].NextWake(), "nothing left to push")
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
	require.Equal(t, l.now.Add(time.Millisecond), l.cores["a"].NextWake(), "c does not have the first")
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
