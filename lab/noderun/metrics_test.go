package noderun_test

import (
	"context"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/concord-go/concord/internal/meters/meterstest"
	"github.com/concord-go/concord/node"
)

func TestRun_IsMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader := sdk.NewManualReader()
	h := newHands()
	cfg := quiet(h)
	cfg.Meters = sdk.NewMeterProvider(sdk.WithReader(reader))
	require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			m := meterstest.Collect(t, reader, "address")
			for name, want := range map[string]int{"ready": 1, "hosts": 1, "members": 1,
				"missing": 0, "split": 0, "splits": 0, "refused": 0, "incarnation": n.Incarnation} {
				key := "concord.node." + name + " " + n.System.Address()
				require.Contains(t, m, key)
				require.EqualValues(t, want, m[key], name)
			}
			require.Contains(t, m, "concord.node.uptime "+n.System.Address())
			if n.Incarnation > 1 {
				cancel()
				return nil
			}
			p := <-h.incarnations
			p.others = []*cluster.Member{{Id: "other", Host: "127.0.0.1", Port: 1}}
			p.list(false) // dropped
			<-ctx.Done()
			return nil
		})
		return nil
	}))
	require.Empty(t, meterstest.Collect(t, reader), "a member that has stopped tells nothing")
}
