package sim_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/sim"
)

// notes collects the notes of an exploration's histories in order, without those of shortening.
type notes struct {
	sync.Mutex
	all []string
}

func (n *notes) add(text string) {
	n.Lock()
	defer n.Unlock()
	n.all = append(n.all, text)
}

func (n *notes) sorted() []string { return slices.Sorted(slices.Values(n.all)) }

// three makes three choices of two each.
func three(n *notes) func(*sim.World) {
	return func(w *sim.World) {
		text := ""
		for _, name := range []string{"a", "b", "c"} {
			if w.Chance(name, 0.1) {
				text += name
			}
		}
		n.add(text)
	}
}

func TestExplore_PlaysEachHistoryOnce(t *testing.T) {
	n := &notes{}
	e := sim.Explore(t, sim.Bounds{Deviations: 2}, three(n))
	require.Equal(t, []string{"", "a", "ab", "ac", "b", "bc", "c"}, n.sorted())
	require.Equal(t, 7, e.Histories)
	require.Equal(t, 3, e.Points)
	require.True(t, e.Complete)

	n = &notes{}
	sim.Explore(t, sim.Bounds{}, three(n))
	require.Equal(t, []string{"", "a", "ab", "abc", "ac", "b", "bc", "c"}, n.sorted())
}

func TestExplore_EnumeratesWhatIsLeftToChance(t *testing.T) {
	n := &notes{}
	sim.Explore(t, sim.Bounds{Deviations: 1}, func(w *sim.World) {
		n.add(time.Duration(w.Number("few", 1, 3)).String() + " " +
			time.Duration(w.Number("many", 0, 1000)).String() +
			" " + w.Span("span", time.Second, time.Minute).String())
		if w.Chance("never", 0) {
			w.Fail("a chance of zero came true")
		}
		w.Calm()
		if w.Chance("calm", 1) || w.Number("calm", 0, 5) > 0 {
			w.Fail("a deviation after Calm")
		}
	})
	require.Equal(t, []string{"1ns 0s 1m0s", "1ns 0s 1s", "1ns 1µs 1s", "2ns 0s 1s", "3ns 0s 1s"},
		n.sorted())
}

func TestExplore_EnumeratesWhatBecomesOfAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		faults sim.Faults
		want   []string
	}{
		"none": {sim.Faults{Delay: 1}, []string{"1ns"}},
		"loss": {sim.Faults{Delay: 1, Loss: 0.1}, []string{"", "1ns"}},
		"all": {
			sim.Faults{Delay: 1, Loss: 0.1, Duplicate: 0.1, Jitter: 5, Late: 0.1, Lateness: 100},
			[]string{"", "101ns", "1ns", "1ns 6ns", "6ns"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &notes{}
			sim.Explore(t, sim.Bounds{Deviations: 1}, func(w *sim.World) {
				w.Faults = c.faults
				var at []string
				w.Send(0, 1, "hello", func() { at = append(at, w.Elapsed().String()) })
				w.Until(time.Second)
				n.add(strings.Join(at, " "))
			})
			require.Equal(t, c.want, n.sorted())
		})
	}
}

// mishap fails if exactly two of many messages are lost and there is no other fault.
func mishap(w *sim.World) {
	w.Faults = sim.Faults{Delay: time.Millisecond, Loss: 0.01, Duplicate: 0.01}
	arrived := map[int]bool{}
	for i := range 30 {
		w.Send(i, 100, i, func() { arrived[i] = true })
	}
	w.Until(time.Second)
	if !arrived[7] && !arrived[21] {
		w.Fail("7 and 21 are lost")
	}
}

func TestExplore_FindsAFaultOfTwoRareChoices(t *testing.T) {
	f, e := sim.FindWithin(sim.Bounds{Deviations: 1}, mishap)
	require.Nil(t, f)
	require.Equal(t, 61, e.Histories)

	f, e = sim.FindWithin(sim.Bounds{Deviations: 2}, mishap)
	require.NotNil(t, f)
	require.False(t, e.Complete)
	require.Equal(t, "message 7>100 lost\nmessage 21>100 lost\n",
		strings.ReplaceAll(f.Short.String(), "# 7 and 21 are lost\n", ""))
	failure, _ := sim.PlayCase([]byte(f.Short.String()), mishap)
	require.Equal(t, "7 and 21 are lost", failure)

	r := &recorder{TB: t}
	sim.Explore(r, sim.Bounds{Deviations: 2}, mishap)
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "explored at")
	require.Contains(t, r.errors[0], "message 7>100 lost")
}

// walk takes ten steps up or right; there are 2^10 histories and 66 states.
func walk(ask bool, wall func(x, y int) bool) func(*sim.World) {
	return func(w *sim.World) {
		x, y := 0, 0
		for range 10 {
			if ask && w.Visited(func() any { return [2]int{x, y} }) {
				return
			}
			if w.Chance("right", 0.5) {
				x++
			} else {
				y++
			}
			if wall(x, y) {
				w.Fail("wall")
			}
		}
	}
}

func nowhere(int, int) bool { return false }

func TestExplore_SkipsStatesAlreadyVisited(t *testing.T) {
	e := sim.Explore(t, sim.Bounds{}, walk(false, nowhere))
	require.Equal(t, 1<<10, e.Histories)
	e = sim.Explore(t, sim.Bounds{}, walk(true, nowhere))
	require.Equal(t, 55, e.States, "all but the ends of walks")
	require.LessOrEqual(t, e.Histories, 2*55+1)
	require.True(t, e.Complete)
	for x := range 11 { // each place is found
		f, _ := sim.FindWithin(sim.Bounds{}, walk(true, func(a, b int) bool {
			return a == x && b == 10-x
		}))
		require.NotNil(t, f, x)
		require.Equal(t, x, f.Short.Size())
	}
}

func TestExplore_CountsDeviationsToAState(t *testing.T) {
	for x := range 6 {
		f, _ := sim.FindWithin(sim.Bounds{Deviations: 5}, walk(true, func(a, b int) bool {
			return a == x && b == 10-x
		}))
		require.NotNil(t, f, x)
	}
	f, e := sim.FindWithin(sim.Bounds{Deviations: 5}, walk(true, func(a, _ int) bool {
		return a == 6
	}))
	require.Nil(t, f)
	require.Equal(t, 5, e.Within)
	require.True(t, e.Complete)
}

func TestExplore_EndsAtTheMostHistories(t *testing.T) {
	_, e := sim.FindWithin(sim.Bounds{Histories: 100}, walk(false, nowhere))
	require.False(t, e.Complete)
	require.Equal(t, 2, e.Within, "1 + 10 + 45 histories")
	require.Less(t, e.Histories, 200)
}

func TestVisited_IsFalseOutsideOfExplorations(t *testing.T) {
	sim.Run(t, sim.Seeds{First: 1, Count: 3}, func(w *sim.World) {
		w.Always("not visited", func() error {
			if w.Visited(func() any { return 1 }) {
				return errors.New("visited")
			}
			return nil
		})
		w.After(time.Second, func() {})
		w.After(time.Second, func() {})
		w.Until(time.Minute)
	})
}
