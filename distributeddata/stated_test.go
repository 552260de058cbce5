package distributeddata_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata"
)

// A write whose level was forgotten is refused, in calls and in messages; a read is Local.
func TestLevel_OfAWriteMustBeStated(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		ctx, dd := context.Background(), c.at(0)
		var forgotten distributeddata.Consistency
		_, err := cart.Update(ctx, dd, addTo("a"), forgotten)
		refused := func(err error) {
			t.Helper()
			require.ErrorIs(t, err, distributeddata.ErrInvalid)
			require.ErrorContains(t, err, "a write needs Local, Majority or another one")
		}
		refused(err)
		refused(cart.Delete(ctx, dd, forgotten))
		refused(distributeddata.Atomically(ctx, dd,
			func(*distributeddata.Tx) error { return nil }, forgotten))
		for _, m := range []distributeddata.Message{
			&distributeddata.Update[items]{Key: cart, Modify: addTo("a")},
			&distributeddata.Delete[items]{Key: cart},
			&distributeddata.Transaction{Modify: func(*distributeddata.Tx) error { return nil }},
		} {
			got, err := c.Member(0).System.Root.RequestFuture(dd.PID(), m, time.Second).Result()
			require.NoError(t, err)
			refused(got.(distributeddata.Response).Err())
		}
		got, err := c.Member(0).System.Root.RequestFuture(dd.PID(),
			&distributeddata.Get[items]{Key: cart}, time.Second).Result()
		require.NoError(t, err)
		require.ErrorIs(t, got.(distributeddata.Response).Err(), distributeddata.ErrNotFound)
	})
}
