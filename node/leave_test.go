package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// remotingStub stops in the way that a test chooses.
type remotingStub struct {
	orderly func()
	killed  bool
}

func (r *remotingStub) Shutdown(graceful bool) {
	if graceful {
		r.orderly()
		return
	}
	r.killed = true
}

func TestLeave_ClosesRemotingWhoseStopPanicsOrHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := &remotingStub{orderly: func() { panic("send on closed channel") }}
		require.NoError(t, closeRemoting(panics))
		require.True(t, panics.killed)

		hangs := &remotingStub{orderly: func() { time.Sleep(10 * time.Second) }}
		began := time.Now()
		require.NoError(t, closeRemoting(hangs))
		require.True(t, hangs.killed)
		require.Equal(t, hangUp, time.Since(began))
		time.Sleep(10 * time.Second)

		fine := &remotingStub{orderly: func() {}}
		require.NoError(t, closeRemoting(fine))
		require.False(t, fine.killed)
	})
}
