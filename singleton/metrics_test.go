package singleton_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/singleton"
)

// collected returns the metrics by name and address.
func collected(t *testing.T, r sdk.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, r.Collect(context.Background(), &all))
	out := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			var points []metricdata.DataPoint[int64]
			switch d := m.Data.(type) {
			case metricdata.Gauge[int64]:
				points = d.DataPoints
			case metricdata.Sum[int64]:
				points = d.DataPoints
			}
			for _, p := range points {
				at, _ := p.Attributes.Value("address")
				name, _ := p.Attributes.Value("singleton")
				require.NotEmpty(t, name.AsString(), m.Name)
				out[m.Name+" "+at.AsString()] += p.Value
			}
		}
	}
	return out
}

func TestMetrics_ShowTheHostAndThatThereIsNone(t *testing.T) {
	reader := sdk.NewManualReader()
	cfg := singleton.Config{Meters: sdk.NewMeterProvider(sdk.WithReader(reader))}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		first, second := " "+c.Member(0).System.Address(), " "+c.Member(1).System.Address()
		for i := range 2 {
			c.found(c.node(i), 20*time.Second)
		}
		m := collected(t, reader)
		require.EqualValues(t, 1, m["concord.singleton.here"+first])
		require.EqualValues(t, 1, m["concord.singleton.started"+first])
		require.Zero(t, m["concord.singleton.without_host"+second])
		require.Contains(t, m, "concord.singleton.here"+second)
		require.Zero(t, m["concord.singleton.here"+second])

		for i := range 2 {
			gate.Of(c.Member(i).System).Shut("guard", "lost")
		}
		time.Sleep(5 * time.Second)
		c.Member(1).System.Root.Send(c.node(1).single.PID(), wrapperspb.String("kept"))
		time.Sleep(25 * time.Second)
		m = collected(t, reader)
		require.Zero(t, m["concord.singleton.here"+first])
		require.InDelta(t, 29, m["concord.singleton.without_host"+second], 2)
		require.EqualValues(t, 1, m["concord.singleton.waiting"+first]+
			m["concord.singleton.waiting"+second])

		require.NoError(t, c.node(1).leave(20*time.Second))
		require.NotContains(t, collected(t, reader), "concord.singleton.here"+second)
	})
}
