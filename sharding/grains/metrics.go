package grains

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/internal/meters"
)

const meterName = "github.com/concord-go/concord/sharding/grains"

func counter(provider metric.MeterProvider) (metric.Int64Counter, error) {
	m := meters.New[struct{}](provider, meterName)
	return m.Int64Counter("concord.grains.not_found",
		metric.WithDescription("Calls of Get that found no grain."))
}

// miss counts calls of Get that have returned nil.
func (l *lookup) miss(n int64) {
	l.missed.Add(context.Background(), n, metric.WithAttributes(
		attribute.String("type", l.typ), attribute.String("address", l.system.Address())))
}
