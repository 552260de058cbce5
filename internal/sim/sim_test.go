package sim_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/sim"
)

// recorder is a test that is expected to fail.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Name() string        { return "TestPlanted" }
func (r *recorder) Log(...any)          {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Error(args ...any)   { r.errors = append(r.errors, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// counter adds up at one place the numbers sent from another. With the bug it loses a number that
// arrives right after a reset if that message was late: three conditions must coincide.
func counter(bug bool) func(*sim.World) {
	return func(w *sim.World) {
		w.Faults = sim.Faults{Delay: time.Millisecond, Jitter: 100 * time.Millisecond}
		value, reset := 0, false
		w.Can("add", func(a sim.Args) {
			n, sent := a.Int(0, 100), w.Elapsed()
			w.Send(0, 1, fmt.Sprint("add ", n), func() {
				if late := w.Elapsed()-sent > 50*time.Millisecond; !bug || !reset || !late {
					value += n
				} else {
					w.Fail("lost %d", n)
				}
				reset = false
			})
		})
		w.Can("reset", func(sim.Args) { value, reset = 0, true })
		for range 20 {
			w.Act(w.Moment(time.Second), "add", 1+w.Rand().IntN(3))
		}
		w.Act(500*time.Millisecond, "reset")
		w.Until(2 * time.Second)
	}
}

func TestRun_ShortensAFailureToWhatItNeeds(t *testing.T) {
	r := &recorder{TB: t}
	report := sim.Run(r, sim.Seeds{First: 1, Count: 30}, counter(true))
	require.Positive(t, report.Failed)
	require.Len(t, r.errors, 1, "only the first failure is told")
	told := r.errors[0]
	require.Contains(t, told, "shortened from 21 acts to 2")
	require.Equal(t, 1, strings.Count(told, "— reset"))
	require.Equal(t, 1, strings.Count(told, "— add"))
	require.Contains(t, told, "message 0>1 at ")
	require.Contains(t, told, "go test ./internal/sim -run '^TestPlanted$' -seed ")
	require.Regexp(t, `seed \d+ at (commit [0-9a-f]{40}|an unknown commit)`, told)
}

func TestRun_TellsTheSmallestSeedAgainAndAgain(t *testing.T) {
	var first string
	for range 5 {
		f := sim.Find(sim.Seeds{First: 1, Count: 200}, counter(true))
		require.NotNil(t, f)
		if first == "" {
			first = f.Short.String()
		}
		require.Equal(t, first, f.Short.String())
	}
}

func TestFind_TellsTheSeedThatFails(t *testing.T) {
	f := sim.Find(sim.Seeds{First: 1, Count: 30}, func(w *sim.World) {
		w.Can("fail", func(sim.Args) { w.Fail("as told") })
		if w.Seed() == 13 {
			w.Act(time.Second, "fail")
		}
		w.Until(time.Minute)
	})
	require.NotNil(t, f)
	require.EqualValues(t, 13, f.Seed)
	require.Equal(t, "as told", f.Text)
	require.Equal(t, []string{"          1s  — fail", "          1s  ✗ as told"}, f.Story)
}

// A planted bug is found, shortened and saved. The saved case fails with the bug and passes without
// it.
func TestSave_IsReplayedForEver(t *testing.T) {
	t.Chdir(t.TempDir())
	r := &recorder{TB: t}
	sim.Run(r, sim.Seeds{First: 1, Count: 30, Save: true}, counter(true))
	files, err := filepath.Glob(filepath.Join(sim.Folder, "TestPlanted_*.txt"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Contains(t, string(text), "# lost ")
	require.Contains(t, string(text), "# Found by TestPlanted as seed ")

	failure, story := sim.PlayCase(text, counter(true))
	require.Contains(t, failure, "lost ")
	require.Contains(t, story, "— reset")
	failure, _ = sim.PlayCase(text, counter(false))
	require.Empty(t, failure)
	sim.Replay(t, sim.Folder, counter(false))
}

func TestSave_OnlyWhenAsked(t *testing.T) {
	t.Chdir(t.TempDir())
	sim.Run(&recorder{TB: t}, sim.Seeds{First: 1, Count: 30}, counter(true))
	require.NoDirExists(t, sim.Folder)
}

func TestRun_GoodHistoriesPass(t *testing.T) {
	report := sim.Run(t, sim.Seeds{First: 1, Count: 50}, func(w *sim.World) {
		got := 0
		w.Can("go", func(sim.Args) { got++ })
		for range 10 {
			w.Act(w.Moment(time.Second), "go")
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

func TestRun_APanicIsAFailureWithItsSeed(t *testing.T) {
	f := sim.Find(sim.Seeds{First: 1, Count: 50}, func(w *sim.World) {
		w.Can("divide", func(a sim.Args) { _ = 1 / a.Int(0, 10) })
		for range 10 {
			w.Act(w.Moment(time.Second), "divide", w.Rand().IntN(10))
		}
		w.Until(time.Second)
	})
	require.NotNil(t, f)
	require.Contains(t, f.Text, "panic: runtime error: integer divide by zero")
	require.Contains(t, f.Text, "sim_test.go")
	require.Equal(t, 1, f.Short.Acts())
}

func TestRun_TimeThatDoesNotPassIsAFailure(t *testing.T) {
	f := sim.Find(sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
		var spin func()
		spin = func() { w.After(0, spin) }
		w.Can("spin", func(sim.Args) { spin() })
		w.Act(0, "spin")
		if w.Seed() == 1 { // once is enough
			w.Until(time.Second)
		}
	})
	require.NotNil(t, f)
	require.Contains(t, f.Text, "time does not pass")
}

func TestFind_ShorteningKeepsTheKindOfFailure(t *testing.T) {
	f := sim.Find(sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
		seen := map[string]bool{}
		for _, verb := range []string{"a", "b"} {
			w.Can(verb, func(sim.Args) { seen[verb] = true })
			w.Act(time.Second, verb)
		}
		w.Until(2 * time.Second)
		switch {
		case seen["a"] && seen["b"]:
			w.Fail("both")
		case seen["a"]:
			w.Fail("only one")
		}
	})
	require.Equal(t, "both", f.Short.Comment[0])
	require.Equal(t, 2, f.Short.Acts())
}

func TestFind_WhatIsNotReproducedIsSaid(t *testing.T) {
	r, n := &recorder{TB: t}, 0
	sim.Run(r, sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
		if n++; n == 1 {
			w.Fail("once")
		}
	})
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "does not come from the world")
}

func TestAlways_IsCheckedAfterEveryStep(t *testing.T) {
	f := sim.Find(sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
		n := 0
		w.Can("step", func(sim.Args) { n++ })
		w.Always("n below 3", func() error {
			if n >= 3 {
				return errors.New("it is 3")
			}
			return nil
		})
		for range 10 {
			w.Act(w.Moment(time.Second), "step")
		}
		w.Until(time.Second)
	})
	require.Equal(t, "n below 3: it is 3", f.Text)
	require.Equal(t, 3, f.Short.Acts())
}

func TestEventually_SaysWhatDidNotHappenInTime(t *testing.T) {
	f := sim.Find(sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
		w.Eventually(time.Second, "soon", func() bool { return true })
		if w.Elapsed() != 0 {
			w.Fail("waited for what was so")
		}
		ready := false
		w.After(500*time.Millisecond, func() { ready = true })
		w.Eventually(time.Second, "ready", func() bool { return ready })
		if w.Elapsed() != 500*time.Millisecond {
			w.Fail("ready after %v", w.Elapsed())
		}
		w.Eventually(time.Minute, "perfect", func() bool { return false })
	})
	require.Equal(t, "not perfect within 1m0s", f.Text)
}

func TestRun_SeesWhatDoesNotComeFromTheSeed(t *testing.T) {
	r := &recorder{TB: t}
	hidden := make(chan int, 1)
	hidden <- 0
	report := sim.Run(r, sim.Seeds{First: 7, Count: 2, Twice: true}, func(w *sim.World) {
		n := <-hidden + 1
		hidden <- n
		w.Note("start")
		w.Note("run %d", n)
	})
	require.Len(t, r.errors, 1)
	require.Equal(t, 2, report.Differ)
	require.Contains(t, r.errors[0], "seed 7 is not one history")
	require.Regexp(t, `run \d+\n.*run \d+`, r.errors[0], "the line where they part")
	require.Zero(t, sim.Run(t, sim.Seeds{First: 1, Count: 50, Twice: true}, counter(false)).Differ)
}

// Omitting choices does not change the others: the n-th choice of a name is always the same.
func TestChance_DependsOnTheNameAlone(t *testing.T) {
	draw := func(others int) (got []any) {
		sim.Find(sim.Seeds{First: 5, Count: 1}, func(w *sim.World) {
			for range others {
				w.Number("other", 0, 9)
				w.Send(0, 1, "", func() {})
			}
			got = append(got, w.Number("a", 0, 1<<30), w.Span("b", 0, time.Hour),
				w.Chance("c", 0.5), w.Number("a", 0, 1<<30))
		})
		return got
	}
	require.Equal(t, draw(0), draw(7))
	require.NotEqual(t, draw(0)[0], draw(0)[3])
}

func TestChance_StaysWithinItsBounds(t *testing.T) {
	yes, zero, low, high := 0, 0, 100, 0
	sim.Run(t, sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
		for range 1000 {
			if w.Chance("yes", 0.25) {
				yes++
			}
			n := w.Number("n", 3, 7)
			low, high = min(low, n), max(high, n)
			if f := w.Fraction("f", 0.5); f == 0 {
				zero++
			} else if f < 0 || f > 0.5 {
				w.Fail("fraction %v", f)
			}
			if d := w.Span("d", time.Second, time.Minute); d < time.Second || d > time.Minute {
				w.Fail("span %v", d)
			}
		}
		w.Calm()
		if w.Chance("yes", 1) {
			w.Fail("a fault after Calm")
		}
	})
	require.InDelta(t, 250, yes, 50)
	require.InDelta(t, 500, zero, 60)
	require.Equal(t, 3, low)
	require.Equal(t, 7, high)
}

func TestSend_LosesDoublesDelaysAndCuts(t *testing.T) {
	count := func(f sim.Faults, change func(*sim.World)) (n int, last time.Duration) {
		sim.Run(t, sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
			w.Faults = f
			if change != nil {
				change(w)
			}
			for range 1000 {
				w.Send(0, 1, "", func() { n++; last = w.Elapsed() })
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
	require.Less(t, last, 2*time.Second)
	n, last = count(sim.Faults{Late: 0.1, Lateness: 10 * time.Second}, nil)
	require.Equal(t, 1000, n)
	require.Greater(t, last, 5*time.Second)
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
	n, _ = count(sim.Faults{Loss: 1, Delay: time.Second}, func(w *sim.World) {
		w.Cut(0, 1)
		w.Calm()
	})
	require.Equal(t, 1000, n)
}

func TestObserve_SeesWhatIsLostToo(t *testing.T) {
	seen := 0
	sim.Run(t, sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
		w.Faults = sim.Faults{Loss: 1}
		w.Observe(func(from, to int, msg any) {
			if from == 2 && to == 3 && msg == "hello" {
				seen++
			}
		})
		w.Send(2, 3, "hello", func() { w.Fail("arrived") })
		w.Until(time.Second)
	})
	require.Equal(t, 1, seen)
}

func TestAct_MistakesAreNamed(t *testing.T) {
	for want, history := range map[string]func(*sim.World){
		`act "fly 1": nobody can "fly"`: func(w *sim.World) { w.Act(0, "fly", 1) },
		`act "go 5": word 1 must be a number from 0 to 3`: func(w *sim.World) {
			w.Can("go", func(a sim.Args) { a.Int(0, 4) })
			w.Act(0, "go", 5)
		},
		`act "go": word 1 is missing`: func(w *sim.World) {
			w.Can("go", func(a sim.Args) { a.Word(0) })
			w.Act(0, "go")
		},
		`act "go soon": word 1 must be a duration`: func(w *sim.World) {
			w.Can("go", func(a sim.Args) { a.Span(0) })
			w.Act(0, "go", "soon")
		},
		`act "go" after time has passed`:      func(w *sim.World) { w.Until(0); w.Act(0, "go") },
		"Rand was used after time has passed": func(w *sim.World) { w.Until(0); w.Rand() },
		`act "go": this makes no sense`: func(w *sim.World) {
			w.Can("go", func(a sim.Args) { a.Fail("this makes no sense") })
			w.Act(0, "go")
		},
	} {
		f := sim.Find(sim.Seeds{First: 1, Count: 1}, func(w *sim.World) {
			history(w)
			w.Until(time.Second)
		})
		require.NotNil(t, f, want)
		require.Equal(t, want, f.Text)
	}
}
