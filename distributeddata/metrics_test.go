package distributeddata_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/meters/meterstest"
)

func TestStatus_IsMeasured(t *testing.T) {
	reader := sdk.NewManualReader()
	cfg := distributeddata.Config{MinMembers: 3, Meters: sdk.NewMeterProvider(
		sdk.WithReader(reader))}
	run(t, 3, cfg, func(c *cluster) {
		require.NoError(t, c.add(0, "x", distributeddata.All))
		time.Sleep(3 * time.Second)
		require.Equal(t, map[string]uint64{c.Member(1).Address: 0, c.Member(2).Address: 0},
			c.at(0).Status().Lag)

		c.Net.Partition(addresses(c, 2), addresses(c, 0, 1))
		for range 5 {
			require.NoError(t, c.add(0, "y", distributeddata.Majority))
		}
		time.Sleep(3 * time.Second)
		s := c.at(0).Status()
		require.EqualValues(t, 5, s.Lag[c.Member(2).Address], "who holds the log is named")
		require.Zero(t, s.Lag[c.Member(1).Address])
		require.Positive(t, s.LogBytes)
		require.EqualValues(t, 6, s.Updates)
		require.Positive(t, s.Sent["replicator.push"].Bytes+s.Sent["replicator.push.durable"].Bytes)
		require.Zero(t, s.Diverged+s.Mended+s.Corrupted+s.Malformed)

		m := meterstest.Collect(t, reader) // of all three
		require.EqualValues(t, 3, m["concord.ddata.ready"])
		require.EqualValues(t, 6, m["concord.ddata.updates"])
		require.EqualValues(t, 7, m["concord.ddata.applied"])
		require.EqualValues(t, 3, m["concord.ddata.keys"])
		require.GreaterOrEqual(t, m["concord.ddata.lag"], int64(10),
			"at both that are on the other side")
		require.Positive(t, m["concord.ddata.sent.bytes"])
	})
	after := meterstest.Collect(t, reader)
	for _, name := range []string{"lag", "ready", "members", "counted"} {
		require.NotContains(t, after, "concord.ddata."+name, "closed replicators are not measured")
	}
}
