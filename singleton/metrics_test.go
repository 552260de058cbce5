package singleton_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/meters/meterstest"
	"github.com/concord-go/concord/singleton"
)

func TestMetrics_ShowTheHostAndThatThereIsNone(t *testing.T) {
	reader := sdk.NewManualReader()
	cfg := singleton.Config{Meters: sdk.NewMeterProvider(sdk.WithReader(reader))}
	run(t, 2, options{cfg: cfg}, func(c *testCluster) {
		of := func(i int) string { return " " + c.Member(i).System.Address() + " jobs" }
		first, second := of(0), of(1)
		for i := range 2 {
			c.found(c.node(i), 20*time.Second)
		}
		m := meterstest.Collect(t, reader, "address", "singleton")
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
		m = meterstest.Collect(t, reader, "address", "singleton")
		require.Zero(t, m["concord.singleton.here"+first])
		require.InDelta(t, 29, m["concord.singleton.without_host"+second], 2)
		require.EqualValues(t, 1, m["concord.singleton.waiting"+first]+
			m["concord.singleton.waiting"+second])

		require.NoError(t, c.node(1).leave(20*time.Second))
		m = meterstest.Collect(t, reader, "address", "singleton")
		require.NotContains(t, m, "concord.singleton.here"+second)
	})
}
