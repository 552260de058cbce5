package distributeddata_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/testkit"
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
		p := testkit.NewProbe(t, c.Member(0).System)
		for _, m := range []distributeddata.Message{
			&distributeddata.Update[items]{Key: cart, Modify: addTo("a")},
			&distributeddata.Delete[items]{Key: cart},
			&distributeddata.Transaction{Modify: func(*distributeddata.Tx) error { return nil }},
		} {
			p.Request(dd.PID(), m)
			refused(testkit.Expect[distributeddata.Response](p).Err())
		}
		p.Request(dd.PID(), &distributeddata.Get[items]{Key: cart})
		require.ErrorIs(t, testkit.Expect[distributeddata.Response](p).Err(),
			distributeddata.ErrNotFound)
	})
}
