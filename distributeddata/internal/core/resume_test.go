package core

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// burn is called at each place where a step of a replica may panic.
func (l *lab) burn(name string) {
	if l.fuse[name]--; l.fuse[name] == 0 {
		panic(planted{})
	}
}

// reach is called with each place of a step of a replica at which it may panic.
func (l *lab) reach(name, place string) {
	if l.trap != nil {
		l.trap(place)
	}
	l.burn(name)
}

// attempt takes a step, and resumes if that panics.
func (l *lab) attempt(name string, ev Event) (effects []Effect) {
	c := l.cores[name]
	switch ev := ev.(type) {
	case Update:
		l.calls[name] = append(l.calls[name], ev.ID)
	case Read:
		l.calls[name] = append(l.calls[name], ev.ID)
	case Drain:
		l.calls[name] = append(l.calls[name], ev.ID)
	}
	defer func() {
		if p := recover(); p != nil {
			require.Equal(l.t, planted{}, p)
			l.blasted++
			l.fuse[name] = l.second
			defer func() {
				if p := recover(); p != nil { // in Resume: the next try succeeds
					effects = c.Resume(l.now, nil)
				}
			}()
			effects = c.Resume(l.now, slices.DeleteFunc(slices.Clone(l.calls[name]),
				func(id uint64) bool {
					_, done := l.done[id]
					return id == 0 || done
				}))
			require.NoError(l.t, audit(c))
		}
	}()
	return c.Step(l.now, ev)
}

// everywhere plays a story once for each place of it in which a step of b may panic.
func everywhere(t *testing.T, story func(l *lab)) {
	t.Helper()
	for place := 1; ; place++ {
		l := newLab(t, "a", "b", "c")
		was := l.cores["b"].Replica()
		l.fuse["b"] = place
		story(l)
		if l.blasted == 0 {
			t.Logf("%d places", place-1)
			require.Greater(t, place, 5)
			return
		}
		l.meet()
		require.Equal(t, was, l.cores["b"].Replica())
		require.Empty(t, l.reb)
		l.equal("a", "b", "c")
		for _, n := range l.order {
			for _, id := range l.calls[n] {
				require.True(t, id == 0 || l.done[id].ID == id,
					"place %d: call %d of %s is not answered", place, id, n)
			}
		}
	}
}

// Whatever a panic interrupts in an update, the update is made or not, and earlier ones stay. All
// callers are answered.
func TestResume_AnUpdateIsMadeOrNot(t *testing.T) {
	everywhere(t, func(l *lab) {
		before := l.update("b", majority, add("s", "before"))
		l.deliver(all)
		l.quiet("b", count("c", "k", 1))
		id := l.update("b", majority, add("s", "x"), add("s2", "x"))
		l.deliver(all)
		l.tick(time.Second)
		require.Contains(l.t, l.done, before)
		require.True(l.t, l.blasted > 0 || !l.done[id].Interrupted)
		want := "c/k=1\ns/before=1\n"
		if got, _ := shown(l.cores["b"].Keys()); got != want || !l.done[id].Interrupted {
			want = "c/k=1\ns/before=1\ns/x=1\ns2/x=1\n"
		}
		l.shows("b", want)
		require.EqualValues(l.t, 2, l.cores["b"].Seen().Get(l.cores["b"].Replica()),
			"no event is made twice")
		require.Subset(l.t, l.told["b"], []string{"c", "s"})
	})
}

// A push that was not applied arrives as an answer; one that was applied is reported.
func TestResume_APushIsAppliedOnce(t *testing.T) {
	everywhere(t, func(l *lab) {
		id := l.update("a", Level{Kind: All}, add("s", "x"), count("c", "k", 1))
		l.update("c", Level{}, count("c", "k", 1))
		l.deliver(all)
		l.pass(2 * time.Second)
		require.Contains(l.t, l.done, id)
		require.Nil(l.t, l.done[id].Short)
		l.shows("b", "c/k=2\ns/x=1\n")
		require.Subset(l.t, l.told["b"], []string{"c", "s"})
	})
}

// A state is joined completely or not at all.
func TestResume_AStateIsJoinedOnce(t *testing.T) {
	everywhere(t, func(l *lab) {
		l.update("c", Level{}, add("s", "own"), count("c", "k", 1))
		l.deliver(all)
		l.update("a", Level{}, remove("s", "own"), add("s2", "y"))
		l.update("a", Level{}, add("s", "x"))
		l.take(all)
		l.cutLogs("a")
		l.pass(8 * time.Second)
		l.shows("b", "c/k=1\ns/x=1\ns2/y=1\n")
		require.Positive(l.t, l.cores["b"].Stats().Bulks+uint64(l.blasted))
		require.Subset(l.t, l.told["b"], []string{"c", "s", "s2"})
	})
}

// Calls under way end once, with an unknown outcome if not with another.
func TestResume_CallsUnderWayEnd(t *testing.T) {
	everywhere(t, func(l *lab) {
		write := l.update("b", majority, add("s", "x"))
		noop := l.update("b", majority, add("s", "x"))
		l.step("b", Read{ID: 91, Level: majority, Deadline: l.now.Add(time.Hour)})
		l.step("b", Read{ID: 92, Level: Level{Kind: Linear}, Deadline: l.now.Add(time.Hour)})
		l.step("b", Drain{ID: 93, Deadline: l.now.Add(time.Hour)})
		l.take(all)
		l.pass(5 * time.Second)
		for _, id := range []uint64{write, noop, 91, 92, 93} {
			require.Contains(l.t, l.done, id)
			require.Nil(l.t, l.done[id].Short, "%d", id)
			require.True(l.t, l.blasted > 0 || !l.done[id].Interrupted)
		}
	})
}

// Only the update that panics repeatedly is given up.
func TestResume_WhatNobodyCanCommitIsGivenUp(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	l.update("b", Level{}, add("s", "kept"))
	l.quiet("b", add("s", "x"))
	l.fuse["b"], l.second = 1, 3 // before it is installed, and when that is retried
	l.tick(time.Second)
	require.True(t, l.done[0].Interrupted)
	l.update("b", Level{}, add("s", "y"))
	l.meet()
	l.equal("a", "b", "c")
	l.shows("a", "s/kept=1\ns/y=1\n")
}

// What a disk hands over is taken as a whole, wherever a panic interrupts this: a replica that
// relied on its disk while it held nothing would delete the rows.
func TestResume_WhatADiskHandsOverIsTaken(t *testing.T) {
	for _, damage := range []string{"", "corrupt"} {
		for place, blasted := 1, 1; blasted > 0; place++ {
			l := newDiskLab(t, "a", "b", "c")
			l.update("a", Level{}, add("s", "x"), count("c", "n", 5))
			l.deliver(all)
			l.update("a", Level{}, add("s", "only")) // no other member receives it
			l.take(all)
			l.crash("a")
			if damage != "" {
				damageRow(&l.disks["a"].simDisk, damage)
			}
			l.start("a")
			l.see("a", "bc") // it waits for the rows
			l.fuse["a"] = place
			l.step("a", Loaded{Image: l.disks["a"].image(t.Fatalf)})
			if damage == "" {
				l.shows("a", "c/n=5\ns/only=1\ns/x=1\n")
			}
			require.Len(t, l.cores["a"].peers, 2)
			l.fuse["a"] = 0
			l.meet()
			l.equal("a", "b", "c")
			l.crash("a")
			require.Empty(t, l.boot("a").holes)
			if damage == "" {
				l.shows("a", "c/n=5\ns/only=1\ns/x=1\n")
			} else {
				l.shows("a", "c/n=5\ns/x=1\n")
				l.meet()
				require.Equal(t, alarm{"a", Unrecovered{[]string{"s"}}}, l.alarms[len(l.alarms)-1])
			}
			if blasted = l.blasted; blasted == 0 {
				require.Greater(t, place, 2)
			}
		}
	}
}

// Nothing that an earlier incarnation hands over is lost either.
func TestResume_TakesWhatAnIncarnationHandsOver(t *testing.T) {
	for place, blasted := 1, 1; blasted > 0; place++ {
		l := newDiskLab(t, "a", "b", "c")
		l.update("a", Level{}, add("s", "x"))
		l.take(all) // no other member receives it
		old := l.cores["a"]
		l.start("a")
		l.fuse["a"] = place
		l.step("a", Inherit{Old: old})
		l.shows("a", "s/x=1\n")
		l.fuse["a"] = 0
		l.meet()
		l.equal("a", "b", "c")
		if blasted = l.blasted; blasted == 0 {
			require.Greater(t, place, 2)
		}
	}
}
