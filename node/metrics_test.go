package node_test

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/concord-go/concord/node"
)

// measured returns the metrics of the member at an address, by name.
func measured(t *testing.T, r sdk.Reader, address string) map[string]int64 {
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
				require.Equal(t, address, at.AsString(), m.Name)
				out[m.Name] += p.Value
			}
		}
	}
	return out
}

func TestRun_IsMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader := sdk.NewManualReader()
	h := newHands()
	cfg := quiet(h)
	cfg.Meters = sdk.NewMeterProvider(sdk.WithReader(reader))
	require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			m := measured(t, reader, n.System.Address())
			for name, want := range map[string]int{"ready": 1, "hosts": 1, "members": 1,
				"missing": 0, "split": 0, "splits": 0, "refused": 0, "life": n.Life} {
				require.Contains(t, m, "concord.node."+name)
				require.EqualValues(t, want, m["concord.node."+name], name)
			}
			if n.Life > 1 {
				cancel()
				return nil
			}
			p := <-h.lives
			p.others = []*cluster.Member{{Id: "other", Host: "127.0.0.1", Port: 1}}
			p.list(false) // dropped
			<-ctx.Done()
			return nil
		})
		return nil
	}))
	require.Empty(t, measured(t, reader, ""), "a member that has stopped tells nothing")
}
