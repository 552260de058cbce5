package snippets

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Prometheus is of docs/operations.md.
func Prometheus() (http.Handler, error) {
	exporter, err := prometheus.New()
	if err != nil {
		return nil, err
	}
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter)))
	return promhttp.Handler(), nil // serve it at /metrics, on a port that strangers do not reach
}

// Telemetry is of docs/operations.md.
func Telemetry(metrics metric.Exporter, spans trace.SpanExporter) (stop func(context.Context)) {
	m := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(metrics)))
	t := trace.NewTracerProvider(trace.WithBatcher(spans))
	otel.SetMeterProvider(m)
	otel.SetTracerProvider(t)
	return func(ctx context.Context) { // sends what is left
		_ = m.Shutdown(ctx)
		_ = t.Shutdown(ctx)
	}
}
