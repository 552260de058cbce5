package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
	"github.com/concord-go/concord/sharding/internal/lane"
)

// S22: an entity that cannot be created backs off, and finally its waiting messages are rejected.
func TestSlot_AnEntityThatDoesNotStart(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Idle: time.Minute, Stash: 2, BackOff: 100 * ms,
		MaxBackOff: 10 * time.Second, Failures: 8})
	now := time.Unix(1000, 0)
	step := func(ev core.SlotEvent) []core.SlotEffect { return slices.Clone(slot.Step(now, ev)) }
	body := core.Body{ID: "x"}
	require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: 1},
		core.Push{ID: "x", Run: 1, Body: body}}, step(core.Take{Body: body}))
	for run := uint64(1); run < 8; run++ {
		require.Empty(t, step(core.Terminated{ID: "x", Run: run, Left: []core.Body{body},
			Failed: true}))
		require.Empty(t, step(core.Terminated{ID: "x", Run: run, Left: []core.Body{body},
			Failed: true}), "said twice")
		wait := min(10*time.Second, 100*ms<<(run-1))
		require.Equal(t, now.Add(wait), slot.NextWake())
		now = now.Add(wait)
		require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: run + 1},
			core.Push{ID: "x", Run: run + 1, Body: body}}, step(core.Pass{}))
	}
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body}},
		step(core.Terminated{ID: "x", Run: 8, Left: []core.Body{body}, Failed: true}))
	require.Zero(t, slot.Len())

	step(core.Take{Body: body})
	require.Equal(t, []core.SlotEffect{core.StopEntity{ID: "x", Run: 9}},
		step(core.Passivate{ID: "x", Run: 9}))
	require.Empty(t, step(core.Passivate{ID: "x", Run: 9}), "asked twice")
	require.Empty(t, step(core.Take{Body: body}))
	require.Empty(t, step(core.Take{Body: body}))
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body}}, step(core.Take{Body: body}),
		"the third waits in vain")
	require.Equal(t, []core.SlotEffect{core.StopEntityNow{ID: "x", Run: 9}},
		step(core.StopAllNow{}))
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body}, core.Reject{Body: body},
		core.Empty{}}, step(core.Terminated{ID: "x", Run: 9}))
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body}}, step(core.Take{Body: body}),
		"they are stopped now")
}

// S14c: an entity that does not end when it is asked to is stopped after HandOff, and the messages
// that have waited start it again.
func TestSlot_AnEntityThatDoesNotEnd(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Stash: 10, HandOff: 10 * time.Second, Failures: 8})
	now := time.Unix(1000, 0)
	step := func(ev core.SlotEvent) []core.SlotEffect { return slices.Clone(slot.Step(now, ev)) }
	body := core.Body{ID: "x"}
	step(core.Take{Body: body})
	require.Equal(t, []core.SlotEffect{core.StopEntity{ID: "x", Run: 1}},
		step(core.Passivate{ID: "x", Run: 1}))
	require.Empty(t, step(core.Take{Body: body}))
	require.Equal(t, now.Add(10*time.Second), slot.NextWake())
	require.Empty(t, step(core.Pass{}))
	now = now.Add(10 * time.Second)
	require.Equal(t, []core.SlotEffect{core.StopEntityNow{ID: "x", Run: 1}}, step(core.Pass{}))
	require.Zero(t, slot.NextWake())
	require.Empty(t, step(core.Pass{}), "once")
	require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: 2},
		core.Push{ID: "x", Run: 2, Body: body}, core.Push{ID: "x", Run: 2, Body: body}},
		step(core.Terminated{ID: "x", Run: 1, Left: []core.Body{body}, Worked: true}))
}

// S22: the messages that an incarnation left precede those that arrived later, and a hand-off
// drains both.
func TestSlot_WhatIsLeftComesFirst(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Stash: 10, BackOff: 100 * ms,
		MaxBackOff: time.Second, Failures: 8})
	now := time.Unix(1000, 0)
	step := func(ev core.SlotEvent) []core.SlotEffect { return slices.Clone(slot.Step(now, ev)) }
	body := func(n int) core.Body { return core.Body{ID: "x", Value: n} }
	step(core.Take{Body: body(1)})
	step(core.Take{Body: body(2)})
	step(core.Passivate{ID: "x", Run: 1})
	step(core.Take{Body: body(3)})
	push := func(run uint64, n int) core.SlotEffect {
		return core.Push{ID: "x", Run: run, Body: body(n)}
	}
	require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: 2}, push(2, 2), push(2, 3)},
		step(core.Terminated{ID: "x", Run: 1, Left: []core.Body{body(2)}, Worked: true}))
	require.Empty(t, step(core.Terminated{ID: "x", Run: 2, Left: []core.Body{body(3)}, Failed: true,
		Worked: true}))
	require.Equal(t, []core.SlotEffect{core.Spawn{ID: "x", Run: 3}, push(3, 3),
		core.StopEntity{ID: "x", Run: 3}}, step(core.StopAll{}))
	require.Equal(t, []core.SlotEffect{core.Empty{}},
		step(core.Terminated{ID: "x", Run: 3, Worked: true}))
}

// S34: the least recently used running entity is passivated; the test compares with a plain list.
func TestSlot_PassivatesTheLeastRecentlyUsed(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Limit: 5, Stash: 1})
	limit, now := 5, time.Unix(1000, 0)
	var used []string // running, most recently used first
	r := rand.New(rand.NewPCG(1, 2))
	for k := range 2000 {
		now = now.Add(ms)
		var ev core.SlotEvent = core.Take{Body: core.Body{ID: fmt.Sprint(r.IntN(12))}}
		if k%100 == 99 {
			limit = 1 + r.IntN(8)
			ev = core.Limit{N: limit}
		} else {
			id := ev.(core.Take).Body.ID
			used = append([]string{id}, slices.DeleteFunc(used, func(o string) bool {
				return o == id
			})...)
		}
		var want []string
		for len(used) > limit {
			want = append(want, used[len(used)-1])
			used = used[:len(used)-1]
		}
		var got []string
		for _, e := range slices.Clone(slot.Step(now, ev)) {
			if end, ok := e.(core.StopEntity); ok {
				got = append(got, end.ID)
				slot.Step(now, core.Terminated{ID: end.ID, Run: end.Run})
			}
		}
		require.Equal(t, want, got, k)
	}
	require.Equal(t, limit, slot.Len())
}

// S22c: an entity that stops itself without having handled a message counts as failed. Otherwise it
// would be restarted in a loop.
func TestSlot_AnEntityThatEndsAtEachStart(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Stash: 10, BackOff: 100 * ms,
		MaxBackOff: time.Second, Failures: 3})
	now := time.Unix(1000, 0)
	step := func(ev core.SlotEvent) []core.SlotEffect { return slices.Clone(slot.Step(now, ev)) }
	b := core.Body{ID: "x"}
	step(core.Take{Body: b})
	for run := uint64(1); run < 3; run++ {
		require.Empty(t, step(core.Terminated{ID: "x", Run: run, Left: []core.Body{b}}))
		require.Equal(t, now.Add(100*ms<<(run-1)), slot.NextWake())
		now = slot.NextWake()
		require.Len(t, step(core.Pass{}), 2)
	}
	require.Equal(t, []core.SlotEffect{core.Reject{Body: b}},
		step(core.Terminated{ID: "x", Run: 3, Left: []core.Body{b}}))
	require.Zero(t, slot.Len())

	step(core.Take{Body: b})
	require.Len(t, step(core.Terminated{ID: "x", Run: 4, Left: []core.Body{b}, Worked: true}), 2,
		"it has handled one: started again at once")
}

// S16: a remembered entity is started without a message, and again when it stops itself or fails,
// until it is forgotten.
func TestSlot_KeepsWhatItRemembersRunning(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Remember: true, Stash: 10, BackOff: 100 * ms,
		MaxBackOff: time.Second, Failures: 3})
	now := time.Unix(1000, 0)
	step := func(ev core.SlotEvent) []core.SlotEffect { return slices.Clone(slot.Step(now, ev)) }
	spawn := func(id string, run uint64) core.SlotEffect { return core.Spawn{ID: id, Run: run} }
	later := func() []core.SlotEffect {
		now = slot.NextWake()
		return step(core.Pass{})
	}
	b := core.Body{ID: "new"}
	require.Empty(t, step(core.Take{Body: b}), "it may be there")
	require.Equal(t, []core.SlotEffect{core.Remember{ID: "new"}, spawn("old", 1)},
		step(core.Recalled{IDs: []string{"old"}}))
	require.Equal(t, []core.SlotEffect{spawn("new", 2), core.Push{ID: "new", Run: 2, Body: b}},
		step(core.Remembered{IDs: []string{"new"}}))

	require.Empty(t, step(core.Terminated{ID: "old", Run: 1, Worked: true}), "by itself")
	require.Equal(t, now.Add(100*ms), slot.NextWake())
	require.Equal(t, []core.SlotEffect{spawn("old", 3)}, later())
	for run := uint64(3); run < 9; run++ {
		require.Empty(t, step(core.Terminated{ID: "old", Run: run, Failed: true}))
		require.Equal(t, []core.SlotEffect{spawn("old", run+1)}, later())
	}

	require.Equal(t, []core.SlotEffect{core.StopEntity{ID: "new", Run: 2}},
		step(core.Passivate{ID: "new", Run: 2, Forget: true}))
	require.Empty(t, step(core.Take{Body: b}))
	require.Equal(t, []core.SlotEffect{core.Forget{ID: "new"}, core.Remember{ID: "new"}},
		step(core.Terminated{ID: "new", Run: 2}), "and begun anew")
	require.Equal(t, []core.SlotEffect{spawn("new", 10), core.Push{ID: "new", Run: 10, Body: b}},
		step(core.Remembered{IDs: []string{"new"}}))
	step(core.Passivate{ID: "new", Run: 10, Forget: true})
	require.Equal(t, []core.SlotEffect{core.Forget{ID: "new"}},
		step(core.Terminated{ID: "new", Run: 10}))

	require.Equal(t, []core.SlotEffect{core.StopEntity{ID: "old", Run: 9}}, step(core.StopAll{}))
	require.Equal(t, []core.SlotEffect{core.Empty{}}, step(core.Terminated{ID: "old", Run: 9}))
}

// S16e: remembered entities are started at the pace that the slots of a member share. A message
// starts one at once, and one that was forgotten meanwhile is not started.
func TestSlot_StartsWhatItRemembersAtAPace(t *testing.T) {
	pace := lane.NewPace(20) // two in each turn of 100 ms
	var slots [2]*core.Slot
	for i := range slots {
		slots[i] = core.NewSlot(core.SlotConfig{Remember: true, Pace: pace, Stash: 10,
			BackOff: 100 * ms, MaxBackOff: time.Second, Failures: 3})
	}
	begun := time.Unix(1000, 0)
	step := func(i int, after time.Duration, ev core.SlotEvent) []core.SlotEffect {
		return slices.Clone(slots[i].Step(begun.Add(after), ev))
	}
	spawn := func(id string, run uint64) core.SlotEffect { return core.Spawn{ID: id, Run: run} }
	wake := func(i int) time.Duration { return slots[i].NextWake().Sub(begun) }

	require.Equal(t, []core.SlotEffect{spawn("a", 1), spawn("b", 2)},
		step(0, 0, core.Recalled{IDs: []string{"a", "b", "c", "d", "e", "f"}}))
	require.Equal(t, 100*ms, wake(0))
	require.Empty(t, step(1, 0, core.Recalled{IDs: []string{"x", "y", "z"}}))
	require.Equal(t, 200*ms, wake(1), "the first slot has the turn before")

	b := core.Body{ID: "c"}
	require.Equal(t, []core.SlotEffect{spawn("c", 3), core.Push{ID: "c", Run: 3, Body: b}},
		step(0, 50*ms, core.Take{Body: b}), "a message does not wait")
	require.Equal(t, []core.SlotEffect{core.StopEntity{ID: "c", Run: 3}},
		step(0, 50*ms, core.Passivate{ID: "c", Run: 3, Forget: true}))
	require.Equal(t, []core.SlotEffect{core.Forget{ID: "c"}},
		step(0, 60*ms, core.Terminated{ID: "c", Run: 3, Worked: true}))
	require.Empty(t, step(0, 99*ms, core.Pass{}))
	require.Equal(t, []core.SlotEffect{spawn("d", 4), spawn("e", 5)}, step(0, 100*ms, core.Pass{}))
	require.Equal(t, 300*ms, wake(0))
	require.Equal(t, []core.SlotEffect{spawn("x", 1), spawn("y", 2)}, step(1, 200*ms, core.Pass{}))
	require.Equal(t, 350*ms, wake(1), "one is left in the first slot")
	require.Equal(t, []core.SlotEffect{spawn("f", 6)}, step(0, 300*ms, core.Pass{}))
	require.True(t, slots[0].NextWake().IsZero())

	require.Equal(t, []core.SlotEffect{core.StopEntity{ID: "x", Run: 1}, core.StopEntity{ID: "y", Run: 2}},
		step(1, 310*ms, core.StopAll{}))
	require.True(t, slots[1].NextWake().IsZero(), "a shard that is given up starts no more")
	require.Empty(t, step(1, 400*ms, core.Pass{}))
}

// S17: messages that wait for entities that do not run yet are bounded, for one slot and for all
// slots of a member. The newest are refused, and room that is free again is used again.
func TestSlot_WhatWaitsIsBounded(t *testing.T) {
	room := lane.NewHeld(16) // of which one slot may use two
	var slots [9]*core.Slot
	for i := range slots {
		slots[i] = core.NewSlot(core.SlotConfig{Remember: true, Room: room, Stash: 10,
			BackOff: 100 * ms, MaxBackOff: time.Second, Failures: 3})
		slots[i].Step(time.Unix(1000, 0), core.Recalled{})
	}
	step := func(i int, ev core.SlotEvent) []core.SlotEffect {
		return slices.Clone(slots[i].Step(time.Unix(1000, 0), ev))
	}
	body := func(id string) core.Body { return core.Body{ID: id} }
	for i := range 8 {
		require.Equal(t, []core.SlotEffect{core.Remember{ID: "a"}},
			step(i, core.Take{Body: body("a")}))
		require.Empty(t, step(i, core.Take{Body: body("a")}))
		for _, id := range []string{"a", "b"} {
			require.Equal(t, []core.SlotEffect{core.Reject{Body: body(id)}},
				step(i, core.Take{Body: body(id)}), "the slot has its part")
		}
	}
	require.Equal(t, []core.SlotEffect{core.Reject{Body: body("c")}},
		step(8, core.Take{Body: body("c")}), "the others have everything")
	require.Len(t, step(0, core.Remembered{IDs: []string{"a"}}), 3)
	require.Zero(t, slots[0].Held())
	require.Equal(t, []core.SlotEffect{core.Remember{ID: "c"}}, step(8, core.Take{Body: body("c")}))
	require.Len(t, step(1, core.StopAllNow{}), 3)
	require.Zero(t, slots[1].Held())
	require.Empty(t, step(8, core.Take{Body: body("c")}))
	require.Equal(t, 2, slots[8].Held())
}

// Limits are tested at their edges and changed at any time: never more entities run than allowed,
// and none is lost.
func TestSlot_LimitsChange(t *testing.T) {
	slot := core.NewSlot(core.SlotConfig{Limit: 3, Stash: 1})
	now, limit := time.Unix(1000, 0), 3
	r := rand.New(rand.NewPCG(3, 0))
	for range 20_000 {
		now = now.Add(ms)
		var ev core.SlotEvent = core.Take{Body: core.Body{ID: fmt.Sprint(r.IntN(300))}}
		if r.IntN(50) == 0 {
			limit = []int{0, 1, 2, 7, 99, 100, 101, 250}[r.IntN(8)]
			ev = core.Limit{N: limit}
		}
		for _, e := range slices.Clone(slot.Step(now, ev)) {
			if e, ok := e.(core.StopEntity); ok {
				slot.Step(now, core.Terminated{ID: e.ID, Run: e.Run, Worked: true})
			}
		}
		require.True(t, limit == 0 || slot.Len() <= limit, "%d run, at most %d",
			slot.Len(), limit)
	}
	running, ended := slot.Len(), 0
	for _, e := range slices.Clone(slot.Step(now, core.StopAll{})) {
		if e, ok := e.(core.StopEntity); ok {
			ended++
			slot.Step(now, core.Terminated{ID: e.ID, Run: e.Run, Worked: true})
		}
	}
	require.Equal(t, running, ended)
	require.Zero(t, slot.Len())
}
