package distributeddata_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/testkit"
)

// traced sets the span of ctx as that of the sender.
func traced(ctx context.Context, m *distributeddata.Update[items]) *distributeddata.Update[items] {
	m.Span = oteltrace.SpanFromContext(ctx)
	return m
}

func TestTrace_OperationsThatWaitAreSpansOfTheirCaller(t *testing.T) {
	run(t, 3, distributeddata.Config{Durable: []string{"kept"}, Store: diskOf(t)},
		func(c *cluster) {
			spans := tracetest.NewSpanRecorder()
			tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer(
				"of the application")
			ctx, above := tracer.Start(context.Background(), "checkout")
			dd := c.at(0)

			_, err := cart.Update(ctx, dd, addTo("milk"), local)
			require.NoError(t, err)
			_, err = cart.Get(ctx, dd)
			require.NoError(t, err)
			_, err = cart.Update(context.Background(), dd, addTo("bread"), distributeddata.Majority)
			require.NoError(t, err)
			require.Empty(t, spans.Ended(),
				"what is answered at once is none, nor what nobody traces")

			_, err = cart.Update(ctx, dd, addTo("eggs"), distributeddata.Majority.Plus(1))
			require.NoError(t, err)
			_, err = cart.Get(ctx, dd, distributeddata.Linearizable)
			require.NoError(t, err)
			_, err = distributeddata.NewKey("none", items{}).Get(ctx, dd, distributeddata.All)
			require.ErrorIs(t, err, distributeddata.ErrNotFound)
			_, err = distributeddata.NewKey("kept", items{}).Update(ctx, dd, addTo("x"), local)
			require.NoError(t, err, "it waits for the disk")
			err = distributeddata.Atomically(ctx, dd, func(*distributeddata.Tx) error {
				return errors.New("no")
			}, distributeddata.All)
			require.ErrorIs(t, err, distributeddata.ErrModify)
			c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
			before := time.Now()
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			require.ErrorIs(t, cart.Delete(short, dd, distributeddata.Majority),
				distributeddata.ErrQuorum)

			var got [][4]string
			all := spans.Ended()
			for _, s := range all {
				require.Equal(t, above.SpanContext().SpanID(), s.Parent().SpanID())
				by := attribute.NewSet(s.Attributes()...)
				text := func(key string) string {
					v, _ := by.Value(attribute.Key("concord.ddata." + key))
					return v.AsString()
				}
				require.Equal(t, "ddata", text("replicator"))
				got = append(got, [4]string{s.Name(), text("key"), text("level"), text("outcome") +
					", " + s.Status().Code.String()})
			}
			require.Equal(t, [][4]string{
				{"concord.ddata.update", "cart", "majority+1", "success, Unset"},
				{"concord.ddata.get", "cart", "linearizable", "success, Unset"},
				{"concord.ddata.get", "none", "all", "not found, Unset"},
				{"concord.ddata.update", "kept", "local", "success, Unset"},
				{"concord.ddata.atomically", "", "all", "refused, Error"},
				{"concord.ddata.delete", "cart", "majority", "not reached, Error"},
			}, got)
			last := attribute.NewSet(all[5].Attributes()...)
			for key, want := range map[string]int64{"answered": 1, "needed": 2} {
				v, ok := last.Value(attribute.Key("concord.ddata." + key))
				require.True(t, ok)
				require.Equal(t, want, v.AsInt64(), key)
			}
			missing, _ := last.Value("concord.ddata.missing")
			require.Len(t, missing.AsStringSlice(), 2)
			require.False(t, all[5].StartTime().Before(before))
			require.Equal(t, 2*time.Second, all[5].EndTime().Sub(all[5].StartTime()))
		})
}

// How long operations take is counted by operation, level and outcome, also of those that came as
// messages.
func TestMetrics_DurationsOfOperations(t *testing.T) {
	reader := sdk.NewManualReader()
	run(t, 3, distributeddata.Config{Meters: sdk.NewMeterProvider(sdk.WithReader(reader))},
		func(c *cluster) {
			durable := c.at(0).Status().Durable != nil
			require.NoError(t, c.add(0, "a"))
			require.NoError(t, c.add(0, "b", distributeddata.Majority))
			require.NoError(t, c.add(0, "c", distributeddata.Majority.Plus(1)))
			p := testkit.NewProbe(t, c.Member(0).System)
			p.Request(c.at(0).PID(), cart.GetMessage(distributeddata.Nodes(3)))
			testkit.Expect[distributeddata.Response](p)
			require.NoError(t, distributeddata.Atomically(context.Background(), c.at(0),
				func(tx *distributeddata.Tx) error {
					cart.In(tx).Add(tx.Writer, "d")
					return nil
				}, distributeddata.All))
			c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
			require.ErrorIs(t, c.add(0, "e", distributeddata.Majority), distributeddata.ErrQuorum)

			var all metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(context.Background(), &all))
			got, sum := map[string]uint64{}, map[string]float64{}
			for _, scope := range all.ScopeMetrics {
				for _, m := range scope.Metrics {
					if h, ok := m.Data.(metricdata.Histogram[float64]); ok &&
						m.Name == "concord.ddata.operation.duration" {
						for _, point := range h.DataPoints {
							of := ""
							for _, key := range []attribute.Key{"operation", "level", "outcome"} {
								v, _ := point.Attributes.Value(key)
								of += v.AsString() + " "
							}
							got[of], sum[of] = point.Count, point.Sum
							require.Less(t, point.Bounds[1], 0.01, "seconds, not milliseconds")
						}
					}
				}
			}
			want := map[string]uint64{
				"update majority success ": 2, "update majority not reached ": 1,
				"get nodes success ": 1, "atomically all success ": 1,
			}
			if durable {
				want["update local success "] = 1
			}
			require.Equal(t, want, got)
			require.InDelta(t, 3, sum["update majority not reached "], 0.01, "of virtual time")
			require.InDelta(t, 0.02, sum["update majority success "], 0.01)
		})
}

// Messages are spans of the span that their sender names; without one, and where nothing waits,
// there is no span.
func TestTrace_MessagesAreSpansOfTheirSender(t *testing.T) {
	run(t, 3, distributeddata.Config{Durable: []string{"kept"}, Store: diskOf(t)},
		func(c *cluster) {
			spans := tracetest.NewSpanRecorder()
			ctx, above := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer(
				"of an actor").Start(context.Background(), "order")
			p := testkit.NewProbe(t, c.Member(0).System)
			ask := func(m any) distributeddata.Response {
				p.Request(c.at(0).PID(), m)
				return testkit.Expect[distributeddata.Response](p)
			}
			kept := distributeddata.NewKey("kept", items{})
			require.NoError(t, ask(traced(ctx, cart.UpdateMessage(addTo("milk"), local))).Err())
			require.NoError(t,
				ask(cart.UpdateMessage(addTo("milk"), distributeddata.Majority)).Err())
			require.NoError(t,
				ask(traced(context.Background(),
					cart.UpdateMessage(addTo("milk"), distributeddata.Majority))).Err())
			c.Member(0).System.Root.Send(c.at(0).PID(),
				traced(ctx, kept.UpdateMessage(addTo("x"), local)))
			require.Len(t, spans.Started(), 1,
				"that of the sender: nothing waits, or nobody traces it")

			require.NoError(t,
				ask(traced(ctx,
					cart.UpdateMessage(addTo("eggs"), distributeddata.Majority))).Err())
			none := distributeddata.NewKey("none", items{}).GetMessage(distributeddata.All)
			none.Span = oteltrace.SpanFromContext(ctx)
			require.ErrorIs(t, ask(none).Err(), distributeddata.ErrNotFound)
			require.NoError(t, ask(traced(ctx, kept.UpdateMessage(addTo("y"), local))).Err())
			no := &distributeddata.Transaction{Modify: func(*distributeddata.Tx) error {
				return errors.New("no")
			}, At: distributeddata.All, Span: oteltrace.SpanFromContext(ctx)}
			require.ErrorIs(t, ask(no).Err(), distributeddata.ErrModify)
			c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
			late := cart.DeleteMessage(distributeddata.Majority)
			late.Span = oteltrace.SpanFromContext(ctx)
			late.Timeout = 2 * time.Second
			require.ErrorIs(t, ask(late).Err(), distributeddata.ErrQuorum)

			var got [][4]string
			all := spans.Ended()
			for _, s := range all {
				require.Equal(t, above.SpanContext().SpanID(), s.Parent().SpanID())
				by := attribute.NewSet(s.Attributes()...)
				text := func(key string) string {
					v, _ := by.Value(attribute.Key("concord.ddata." + key))
					return v.String()
				}
				got = append(got, [4]string{s.Name(), text("key"), text("level") + " of " +
					text("counted"), text("outcome") + ", " + s.Status().Code.String()})
			}
			require.Equal(t, [][4]string{
				{"concord.ddata.update", "cart", "majority of 3", "success, Unset"},
				{"concord.ddata.get", "none", "all of 3", "not found, Unset"},
				{"concord.ddata.update", "kept", "local of ", "success, Unset"},
				{"concord.ddata.atomically", "", "all of 3", "refused, Error"},
				{"concord.ddata.delete", "cart", "majority of 3", "not reached, Error"},
			}, got)
			last := attribute.NewSet(all[4].Attributes()...)
			answered, _ := last.Value("concord.ddata.answered")
			require.EqualValues(t, 1, answered.AsInt64())
			require.Equal(t, 2*time.Second, all[4].EndTime().Sub(all[4].StartTime()))
		})
}

// hostileSpan fails wherever it is asked for its provider.
type hostileSpan struct{ noop.Span }

func (hostileSpan) IsRecording() bool                        { return true }
func (hostileSpan) TracerProvider() oteltrace.TracerProvider { panic("the application's") }

func TestTrace_ATracerThatPanicsDoesNotHurt(t *testing.T) {
	run(t, 3, distributeddata.Config{}, func(c *cluster) {
		p := testkit.NewProbe(t, c.Member(0).System)
		m := cart.UpdateMessage(addTo("milk"), distributeddata.Majority)
		m.Span = hostileSpan{}
		p.Request(c.at(0).PID(), m)
		require.NoError(t, testkit.Expect[distributeddata.Response](p).Err())
		require.EqualValues(t, 1, c.at(0).Status().Faults)
		require.Zero(t, c.at(0).Status().Panics)
	})
}

func diskOf(t *testing.T) store.Store {
	t.Helper()
	s, err := testkit.NewDisk(1).Open("ddata")
	require.NoError(t, err)
	return s
}
