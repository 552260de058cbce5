package distributeddata

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// goroutine identifies the goroutine that calls it.
func goroutine() string {
	var b [64]byte
	return strings.Fields(string(b[:runtime.Stack(b[:], false)]))[1]
}

// A mailbox runs on one goroutine until one of its runs exits that, and then on the next. The
// goroutine ends with the actor, and runs scheduled later are still executed. The bubble fails if a
// goroutine is left.
func TestPinnedDispatcher_OneGoroutineUntilTheActorStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		d := newPinnedDispatcher(1, ended)
		var on []string
		run := func(f func()) {
			d.Schedule(func() { on = append(on, goroutine()); f() })
			synctest.Wait()
		}
		run(func() {})
		// The next run, while this one returns.
		run(func() { d.Schedule(func() { on = append(on, goroutine()) }) })
		require.Len(t, on, 3)
		require.Equal(t, on[0], on[1])
		require.Equal(t, on[0], on[2])

		exits := 1
		run(func() {
			if exits--; exits == 0 {
				runtime.Goexit()
			}
		})
		run(func() {})
		require.Len(t, on, 6, "the run that was cut short goes on")
		require.Equal(t, on[0], on[3])
		require.NotEqual(t, on[0], on[4])
		require.Equal(t, on[4], on[5])

		close(ended)
		synctest.Wait()
		run(func() {})
		require.Len(t, on, 7)
	})
}
