package distributeddata

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// goroutine names the goroutine that calls it.
func goroutine() string {
	var b [64]byte
	return strings.Fields(string(b[:runtime.Stack(b[:], false)]))[1]
}

// A mailbox runs on one goroutine until one of its runs ends that, then on the next; with the actor the
// goroutine ends, and what is scheduled later runs all the same. The bubble fails if one is left.
func TestSteadfast_OneGoroutineUntilTheActorStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		d := newSteadfast(1, ended)
		var on []string
		run := func(f func()) {
			d.Schedule(func() { on = append(on, goroutine()); f() })
			synctest.Wait()
		}
		run(func() {})
		run(func() { d.Schedule(func() { on = append(on, goroutine()) }) }) // the next one, while this returns
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
