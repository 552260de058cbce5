package crdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// changedBy applies a change by a replica.
func changedBy[T crdt.Value[T]](r *crdt.Replica, v T, f func(w *crdt.Writer, v *T)) (T, error) {
	_, err := crdt.Update(r, &v, func(w *crdt.Writer, v *T) error { f(w, v); return w.Err() })
	return v, err
}

// After a reset by another replica a counter has its whole range again, although the replica that
// counted continues its chain.
func TestGCounter_AddsInRangeAfterAResetByAnother(t *testing.T) {
	a, b := crdt.NewReplica(1), crdt.NewReplica(2)
	v, err := changedBy(a, crdt.GCounter{}, func(w *crdt.Writer, v *crdt.GCounter) {
		v.Add(w, math.MaxUint64-5)
	})
	require.NoError(t, err)
	reset, err := changedBy(b, v, func(w *crdt.Writer, v *crdt.GCounter) { v.Reset(w) })
	require.NoError(t, err)
	v, err = changedBy(a, v, func(w *crdt.Writer, v *crdt.GCounter) { v.Add(w, 5) })
	require.NoError(t, err)
	v = v.Merge(reset)
	require.EqualValues(t, 5, v.Value())
	for want := uint64(6); want < 9; want++ { // past the largest total
		v, err = changedBy(a, v, func(w *crdt.Writer, v *crdt.GCounter) { v.Add(w, 1) })
		require.NoError(t, err)
		require.Equal(t, want, v.Value())
		require.Equal(t, want, reset.Merge(v).Value())
		b, err := v.AppendBinary(nil)
		require.NoError(t, err)
		again, err := crdt.GCounter{}.Decode(b)
		require.NoError(t, err)
		require.Equal(t, want, again.Value())
	}
	_, err = changedBy(a, v, func(w *crdt.Writer, v *crdt.GCounter) { v.Add(w, math.MaxUint64) })
	require.ErrorIs(t, err, crdt.ErrOverflow)
	v, err = changedBy(b, v, func(w *crdt.Writer, v *crdt.GCounter) { v.Reset(w) })
	require.NoError(t, err)
	require.Zero(t, v.Value())
}

// Concurrent additions may take a PNCounter out of the range of int64. Additions that bring it
// nearer succeed, however small they are.
func TestPNCounter_ComesBackIntoItsRangeInSteps(t *testing.T) {
	for _, sign := range []int64{1, -1} {
		a, b := crdt.NewReplica(1), crdt.NewReplica(2)
		most := func(w *crdt.Writer, v *crdt.PNCounter) { v.Add(w, sign*math.MaxInt64) }
		v, err := changedBy(a, crdt.PNCounter{}, most)
		require.NoError(t, err)
		o, err := changedBy(b, crdt.PNCounter{}, most)
		require.NoError(t, err)
		v = v.Merge(o)
		_, err = changedBy(a, v, func(w *crdt.Writer, v *crdt.PNCounter) { v.Add(w, sign) })
		require.ErrorIs(t, err, crdt.ErrOverflow)
		v, err = changedBy(a, v, func(w *crdt.Writer, v *crdt.PNCounter) { v.Add(w, -sign) })
		require.NoError(t, err)
		v, err = changedBy(a, v, func(w *crdt.Writer, v *crdt.PNCounter) {
			v.Add(w, -sign*(math.MaxInt64-1))
		})
		require.NoError(t, err)
		require.Equal(t, sign*math.MaxInt64, v.Value())
	}
}

func TestBoundedCounter_TransferToOneselfNeedsTheRights(t *testing.T) {
	a := crdt.NewReplica(1)
	give := func(n uint64) func(w *crdt.Writer, v *crdt.BoundedCounter) {
		return func(w *crdt.Writer, v *crdt.BoundedCounter) { v.Transfer(w, 1, n) }
	}
	_, err := changedBy(a, crdt.BoundedCounter{}, give(1))
	require.ErrorIs(t, err, crdt.ErrBounds)
	v, err := changedBy(a, crdt.BoundedCounter{}, func(w *crdt.Writer, v *crdt.BoundedCounter) {
		v.Add(w, 2)
	})
	require.NoError(t, err)
	v, err = changedBy(a, v, give(2))
	require.NoError(t, err)
	require.EqualValues(t, 2, v.Rights(1))
}
