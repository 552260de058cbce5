package singleton_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/singleton"
)

// The instance continues the trace of an Ask, at its own member and from another one.
func TestAsk_IsASpanThatTheInstanceContinues(t *testing.T) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	produce := func(*testCluster, *node) func(coordination.Tenure) actor.Actor {
		return func(coordination.Tenure) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					ctx.Respond(wrapperspb.String(ctx.MessageHeader().Get("traceparent")))
				}
			})
		}
	}
	run(t, 2, options{produce: produce}, func(c *testCluster) {
		spans := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
		above, parent := tracer.Start(context.Background(), "a request")
		for i := range 2 {
			ctx, cancel := context.WithTimeout(above, 20*time.Second)
			res, err := singleton.As[*wrapperspb.StringValue](c.node(i).single.Ask(ctx,
				wrapperspb.String("who")))
			cancel()
			require.NoError(t, err)
			ended := spans.Ended()
			require.Equal(t, "concord.singleton.ask", ended[len(ended)-1].Name())
			require.Equal(t, fmt.Sprintf("00-%s-%s-01", parent.SpanContext().TraceID(),
				ended[len(ended)-1].SpanContext().SpanID()), res.Value)
		}
	})
}
