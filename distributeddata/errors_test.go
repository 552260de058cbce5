package distributeddata_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/simnet"
)

// Errors say how many members are seen, how many are needed, and which are missing.
func TestErrors_NameWhoIsMissing(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
		err := c.count(0, 1, distributeddata.Majority)
		require.EqualError(t, err,
			`distributeddata: consistency level not reached: key "visits": 1 of 2 replicas, `+
				`3 of 3 members seen; missing node-1:1, node-2:1`)

		// dropped by its provider
		c.Unlist([]*simnet.Member{c.Member(0)}, []*simnet.Member{c.Member(1), c.Member(2)})
		synctest.Wait()
		err = c.count(0, 1, distributeddata.Majority)
		require.EqualError(t, err,
			`distributeddata: consistency level not reached: key "visits": 1 of 2 replicas, `+
				`1 of 3 members seen; missing node-1:1, node-2:1`)
		q, ok := errors.AsType[*distributeddata.QuorumError](err)
		require.True(t, ok)
		require.Equal(t, 1, q.Seen)
		require.Equal(t, 3, q.Wanted)
	})
}

func TestReady_SaysWhatItWaitsFor(t *testing.T) {
	ready := func(dd *distributeddata.Replicator) error {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		err := dd.Ready(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return err
	}
	runRejoin(t, 3, distributeddata.Config{MinMembers: 3}, func(c *rejoinCluster) {
		require.NoError(t, c.end(c.Member(0)))
		require.ErrorIs(t, ready(c.at(0)), lifecycle.ErrRejoining)
		m := c.Start(c.Member(0).Address)
		require.EqualError(t, ready(c.dd[m]), `distributeddata: replicator "ddata" is not ready: `+
			`this member is not listed in its own view yet: context deadline exceeded`)
		c.Net.Partition(addresses(c.cluster, 0), addresses(c.cluster, 1, 2))
		c.List([]*simnet.Member{m}, []*simnet.Member{m, c.Member(1)})
		require.EqualError(t, ready(c.dd[m]), `distributeddata: replicator "ddata" is not ready: `+
			`2 of 3 members seen; missing node-2:1: context deadline exceeded`)
		c.List([]*simnet.Member{m}, c.Live())
		require.EqualError(t, ready(c.dd[m]), `distributeddata: replicator "ddata" is not ready: `+
			`3 of 3 members seen; not refilled yet by node-1:1, node-2:1: context deadline exceeded`)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = lifecycle.Of(m.System).Stop(ctx, nil)
	})
}
