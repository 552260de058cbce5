package sharding_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// The entity of an Ask continues the caller's trace, here and at another member; the span of the
// call has its outcome.
func TestAsk_IsASpanThatTheEntityContinues(t *testing.T) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	produce := func(*node) func(sharding.Entity) actor.Actor {
		return func(sharding.Entity) actor.Actor {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*wrapperspb.StringValue); ok {
					ctx.Respond(wrapperspb.String(ctx.MessageHeader().Get("traceparent")))
				}
			})
		}
	}
	run(t, 2, options{produce: produce}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		spans := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
		above, parent := tracer.Start(context.Background(), "a request")
		for k := range 20 { // on both members
			id := fmt.Sprint("e", k)
			res, err := sharding.As[*wrapperspb.StringValue](c.node(0).region.Ref(id).Ask(above,
				wrapperspb.String("who")))
			require.NoError(t, err)
			ended := spans.Ended()
			span := ended[len(ended)-1]
			require.Equal(t, "concord.sharding.ask", span.Name())
			require.Equal(t, parent.SpanContext().SpanID(), span.Parent().SpanID())
			require.Equal(t, fmt.Sprintf("00-%s-%s-01", parent.SpanContext().TraceID(),
				span.SpanContext().SpanID()), res.Value)
			require.Equal(t, codes.Unset, span.Status().Code)
			require.Contains(t, fmt.Sprint(span.Attributes()), id)
		}
		_, err := c.node(0).region.Ref("").Ask(above, wrapperspb.String("who"))
		require.ErrorIs(t, err, sharding.ErrInvalid)
		ended := spans.Ended()
		require.Equal(t, codes.Error, ended[len(ended)-1].Status().Code)
	})
}
