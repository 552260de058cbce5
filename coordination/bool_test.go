package coordination_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

// The interface that code written for another actor system's lease expects.
var _ interface {
	Acquire() (bool, error)
	AcquireWithCallback(onLost func(cause error)) (bool, error)
	Release() (bool, error)
	CheckLease() bool
} = (*coordination.BoolLease)(nil)

// losses collects the arguments of callbacks.
type losses struct {
	mu   sync.Mutex
	told []error
}

func (l *losses) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, err)
}

func (l *losses) all() []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told
}

func TestBool_CallbacksTellALossOnceAndNoRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		session, err := coordination.Open(store, times)
		require.NoError(t, err)
		defer func() { _ = session.Close(context.Background()) }()
		lease := session.Lease("x").Bool()
		require.False(t, lease.CheckLease(), "before an acquire")

		var first, second losses
		for _, callback := range []func(error){first.add, second.add, nil} {
			ok, err := lease.AcquireWithCallback(callback)
			require.True(t, ok)
			require.NoError(t, err)
		}
		store.away.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.False(t, lease.CheckLease(), "after the loss")
		for _, told := range [][]error{first.all(), second.all()} {
			require.Len(t, told, 1)
			require.ErrorIs(t, told[0], coordination.ErrLost)
		}
		ok, err := lease.Acquire()
		require.False(t, ok)
		require.ErrorIs(t, err, coordination.ErrUnknown, "the store is away: nobody knows")

		store.away.Store(false)
		time.Sleep(time.Minute)
		var third losses
		ok, err = lease.AcquireWithCallback(third.add)
		require.True(t, ok)
		require.NoError(t, err)
		ok, err = lease.Release()
		require.True(t, ok)
		require.NoError(t, err)
		synctest.Wait()
		require.Empty(t, third.all(), "told of a release")
		require.Len(t, first.all(), 1, "told of another tenure")
	})
}

func TestBool_TakenIsFalseAndARefusedReleaseToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		var leases [2]*coordination.BoolLease
		for i := range leases {
			session, err := coordination.Open(store, times)
			require.NoError(t, err)
			defer func() { _ = session.Close(context.Background()) }()
			leases[i] = session.Lease("x").Bool()
		}
		ok, err := leases[0].Acquire()
		require.True(t, ok)
		require.NoError(t, err)
		ok, err = leases[1].Acquire()
		require.False(t, ok)
		require.NoError(t, err)
		ok, err = leases[1].Release()
		require.True(t, ok, "nothing is held by it")
		require.NoError(t, err)

		store.refuses.Store(true)
		ok, err = leases[0].Release()
		require.False(t, ok)
		require.NoError(t, err)
		require.False(t, leases[0].CheckLease())
		store.refuses.Store(false)
		time.Sleep(time.Minute)
		ok, err = leases[1].Acquire()
		require.True(t, ok)
		require.NoError(t, err)
	})
}
