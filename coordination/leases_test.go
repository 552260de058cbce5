package coordination_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

func TestLeases_SaysWhatTheSessionKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		a, err := coordination.Open(store, coordination.Config{Owner: "a"})
		require.NoError(t, err)
		b, err := coordination.Open(store, coordination.Config{Owner: "b"})
		require.NoError(t, err)
		require.Empty(t, a.Leases())

		_, err = a.Lease("y").TryAcquire(t.Context())
		require.NoError(t, err)
		x, err := a.Lease("x").TryAcquire(t.Context())
		require.NoError(t, err)
		_, err = b.Lease("x").TryAcquire(t.Context())
		require.ErrorIs(t, err, coordination.ErrHeld)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := b.Lease("x").Acquire(ctx)
			done <- err
		}()
		synctest.Wait()

		held := a.Leases()
		require.Len(t, held, 2, "the session's own record is none of its leases")
		require.Equal(t, []string{"x", "y"}, []string{held[0].Name, held[1].Name})
		require.True(t, held[0].Held)
		require.Equal(t, "a", held[0].Owner)
		require.Equal(t, x.Token(), held[0].Token)
		require.Equal(t, x.Remaining(), held[0].Remaining)
		require.False(t, held[0].NearExpiry)

		waits := b.Leases()
		require.Len(t, waits, 1)
		require.Equal(t, coordination.LeaseStatus{Name: "x", Token: x.Token(), Waiting: 1,
			Owner: "a"}, waits[0])
		cancel()
		require.ErrorIs(t, <-done, coordination.ErrHeld)

		store.away.Store(true)
		for !a.Leases()[0].NearExpiry {
			require.True(t, a.Leases()[0].Held, "the warning comes before the loss")
			time.Sleep(100 * time.Millisecond)
		}
		store.away.Store(false)
		_ = a.Close(t.Context())
		_ = b.Close(t.Context())
		require.Nil(t, a.Leases())
	})
}
