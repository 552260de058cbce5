package sim_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/testkit/sim"
)

// recorder is a test that is expected to fail.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Log(...any)        {}
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// counter loses an increment when it comes right after a reset: a bug that needs two acts of twenty.
func counter(w *sim.World) {
	value, want, reset := 0, 0, false
	for range 20 {
		w.Act(w.Moment(time.Second), "add", func(r *rand.Rand) {
			n := 1 + r.IntN(3)
			want += n
			if !reset {
				value += n
			}
			reset = false
		})
	}
	w.Act(500*time.Millisecond, "reset", func(*rand.Rand) { value, want, reset = 0, 0, true })
	w.Until(time.Second)
	if value != want {
		w.Fail("value %d, want %d", value, want)
	}
}

func TestRun_ShortensAFailureToWhatItNeeds(t *testing.T) {
	r := &recorder{TB: t}
	report := sim.Run(r, sim.Seeds{First: 1, Count: 3}, counter)
	require.Equal(t, 3, report.Failed)
	require.Len(t, r.errors, 1, "only the first failure is told")
	require.Contains(t, r.errors[0], "shortened from 21 acts to 2")
	require.Contains(t, r.errors[0], "— reset")
	require.Equal(t, 1, strings.Count(r.errors[0], "— add"))
}

func TestRun_GoodHistoriesPass(t *testing.T) {
	report := sim.Run(t, sim.Seeds{First: 1, Count: 50}, func(w *sim.World) {
		got := 0
		for range 10 {
			w.Act(w.Moment(time.Second), "go", func(*rand.Rand) { got++ })
		}
		w.Until(2 * time.Second)
		if got != 10 {
			w.Fail("%d of 10", got)
		}
	})
	require.Equal(t, 50, report.Histories)
	require.Zero(t, report.Failed)
	require.Equal(t, 500, report.Steps)
	require.Equal(t, 100*time.Second, report.Virtual)
}

func TestTwice_SeesWhatDoesNotComeFromTheSeed(t *testing.T) {
	r := &recorder{TB: t}
	n := 0
	sim.Twice(r, sim.Seeds{First: 7, Count: 2}, func(w *sim.World) { n++; w.Note("run %d", n) })
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "seed 7 is not one history")
	sim.Twice(t, sim.Seeds{First: 1, Count: 20}, counter)
}

func TestSend_LosesDoublesDelaysAndCuts(t *testing.T) {
	count := func(f sim.Faults, change func(*sim.World)) (n int, last time.Duration) {
		sim.Run(t, sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
			w.Faults = f
			if change != nil {
				change(w)
			}
			for range 1000 {
				w.Send(0, 1, func() { n++; last = w.Elapsed() })
			}
			w.Until(time.Minute)
		})
		return n, last
	}
	n, last := count(sim.Faults{Delay: time.Second}, nil)
	require.Equal(t, 1000, n)
	require.Equal(t, time.Second, last)
	n, last = count(sim.Faults{Delay: time.Second, Jitter: time.Second, Duplicate: 0.5}, nil)
	require.InDelta(t, 1500, n, 100)
	require.Greater(t, last, 1900*time.Millisecond)
	n, _ = count(sim.Faults{Loss: 0.5}, nil)
	require.InDelta(t, 500, n, 100)
	n, _ = count(sim.Faults{Delay: time.Second}, func(w *sim.World) { w.Cut(0, 1) })
	require.Zero(t, n)
	n, _ = count(sim.Faults{Delay: time.Second}, func(w *sim.World) {
		w.Cut(0, 1)
		w.Cut(1, 0)
		w.After(500*time.Millisecond, func() { w.Mend(0, 1) })
	})
	require.Equal(t, 1000, n)
	n, _ = count(sim.Faults{Loss: 1, Delay: time.Second}, func(w *sim.World) { w.Cut(0, 1); w.Calm() })
	require.Equal(t, 1000, n)
}
