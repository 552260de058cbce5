package distributeddata_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/concord-go/concord/distributeddata"
)

// histogram returns the points of a histogram, added up over the members, by the values of some of
// its attributes.
func histogram(t *testing.T, r sdk.Reader, name string,
	by ...attribute.Key) map[string]metricdata.HistogramDataPoint[float64] {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, r.Collect(context.Background(), &all))
	points := map[string]metricdata.HistogramDataPoint[float64]{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok || m.Name != name {
				continue
			}
			for _, p := range h.DataPoints {
				require.True(t, p.Attributes.HasValue("address"), "%s names its member", name)
				of := ""
				for _, key := range by {
					v, _ := p.Attributes.Value(key)
					of += v.AsString() + " "
				}
				sum := points[of]
				sum.Count, sum.Sum, sum.Bounds = sum.Count+p.Count, sum.Sum+p.Sum, p.Bounds
				points[of] = sum
			}
		}
	}
	return points
}

// How long updates take to reach the others is measured by the member that makes them, also for
// updates that nobody waits for, and over a partition.
func TestMetrics_Convergence(t *testing.T) {
	reader := sdk.NewManualReader()
	run(t, 3, distributeddata.Config{Meters: sdk.NewMeterProvider(sdk.WithReader(reader))},
		func(c *cluster) {
			keys := "volatile "
			if c.at(0).Status().Durable != nil {
				keys = "durable "
			}
			points := func() map[string]metricdata.HistogramDataPoint[float64] {
				return histogram(t, reader, "concord.ddata.convergence", "keys", "level")
			}
			require.Empty(t, points())
			require.NoError(t, c.add(0, "a"))
			time.Sleep(2 * time.Second)
			got := points()
			require.Len(t, got, 2)
			for _, level := range []string{"majority ", "all "} {
				require.EqualValues(t, 1, got[keys+level].Count, level)
				require.InDelta(t, 0.02, got[keys+level].Sum, 0.015, "a message there and one back")
				require.Less(t, got[keys+level].Bounds[0], 0.001, "seconds")
			}

			for range 150 { // of many updates, some are samples
				require.NoError(t, c.add(0, "b"))
				require.NoError(t, c.add(0, "c"))
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			require.EqualValues(t, 3, points()[keys+"all "].Count)

			before := c.at(0).Status().Sent
			c.Net.Partition(addresses(c, 2), addresses(c, 0, 1))
			require.NoError(t, c.add(0, "d"))
			time.Sleep(time.Minute)
			require.EqualValues(t, 4, points()[keys+"majority "].Count)
			require.EqualValues(t, 3, points()[keys+"all "].Count, "one member lacks it")
			c.Net.Heal()
			time.Sleep(10 * time.Second)
			got = points()
			require.EqualValues(t, 4, got[keys+"all "].Count)
			require.InDelta(t, 65, got[keys+"all "].Sum, 5)
			require.Less(t, got[keys+"majority "].Sum, 0.2)
			after := c.at(0).Status().Sent
			for _, kind := range []string{"replicator.probe", "replicator.probe.durable"} {
				require.Equal(t, before[kind], after[kind], "nothing is asked for it")
			}
		})
}

// Samples are not pending operations: they leave the whole of MaxOperations to the application.
func TestMetrics_ConvergenceIsNoOperation(t *testing.T) {
	run(t, 3, distributeddata.Config{MaxOperations: 1}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
		require.NoError(t, c.add(0, "a"))
		time.Sleep(time.Second)
		require.ErrorIs(t, c.add(0, "b", distributeddata.Majority), distributeddata.ErrQuorum)
	})
}
