package distributeddata_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// A call whose context is cancelled is not begun. A call whose deadline has passed is begun, and
// its actor reports how far it got.
func TestCall_OfAContextThatHasEnded(t *testing.T) {
	early(t, func(t *testing.T, _ *actor.ActorSystem, dd *distributeddata.Replicator, up func()) {
		up()
		cancelled, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := cart.Update(cancelled, dd, addTo("a"), local)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, distributeddata.ErrUnknown)
		synctest.Wait()
		_, err = cart.Get(context.Background(), dd)
		require.ErrorIs(t, err, distributeddata.ErrNotFound)

		late, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		begin := time.Now()
		v, err := cart.Update(late, dd, addTo("b"), local)
		require.NoError(t, err)
		require.Equal(t, 1, v.Len())
		require.Zero(t, time.Since(begin))
	})
}

// A call that is cancelled while it waits returns at once. Its operation continues, and the answer
// is dropped.
func TestCall_CancelledWhileItWaits(t *testing.T) {
	early(t, func(t *testing.T, _ *actor.ActorSystem, dd *distributeddata.Replicator, up func()) {
		up()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		entered, release, begin := make(chan struct{}), make(chan struct{}), time.Now()
		go func() {
			<-entered
			time.Sleep(10 * time.Millisecond)
			cancel()
			time.Sleep(time.Second)
			close(release)
		}()
		go func() {
			_, _ = cart.Update(context.Background(), dd, func(w *crdt.Writer, v *items) error {
				close(entered)
				<-release
				v.Add(w, "a")
				return nil
			}, local)
		}()
		<-entered
		_, err := cart.Update(ctx, dd, addTo("c"), local)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, distributeddata.ErrUnknown)
		require.Equal(t, 10*time.Millisecond, time.Since(begin))
		<-release
		v, err := cart.Update(context.Background(), dd, addTo("b"), local)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, slices.Collect(v.All()))
	})
}
