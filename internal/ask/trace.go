package ask

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Span starts a child of the span of ctx, by the tracer provider of that one, if it is recorded.
// The returned context carries it; end ends it with the error of the call. what yields its
// attributes.
func Span(ctx context.Context, scope, name string, what func() []attribute.KeyValue,
) (_ context.Context, end func(error)) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, func(error) {}
	}
	ctx, span := above.TracerProvider().Tracer(scope).Start(ctx, name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(what()...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// header returns the header of a message by which its receiver continues the trace of ctx, as
// OpenTelemetry's global propagator writes it, or nil.
func header(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	h := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, h)
	if len(h) == 0 {
		return nil
	}
	return h
}
