package snippets

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
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
