// Package meterstest reads metrics in tests.
package meterstest

import (
	"context"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Collect returns the sum of the points of each metric, and of a histogram the number of its
// values. Points are listed apart by the values of the given attributes, which follow the name of
// the metric, each after a space; a point without an attribute counts without it.
func Collect(t testing.TB, r sdk.Reader, attributes ...string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Gauge[int64]:
				add(sums, m.Name, d.DataPoints, attributes)
			case metricdata.Sum[int64]:
				add(sums, m.Name, d.DataPoints, attributes)
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					sums[m.Name] += int64(p.Count)
					if p.Bounds[1] >= 0.01 {
						t.Errorf("%s is in milliseconds, not in seconds", m.Name)
					}
				}
			}
		}
	}
	return sums
}

func add(sums map[string]int64, name string, points []metricdata.DataPoint[int64],
	attributes []string) {
	for _, p := range points {
		key := []string{name}
		for _, a := range attributes {
			if v, ok := p.Attributes.Value(attribute.Key(a)); ok {
				key = append(key, v.AsString())
			}
		}
		sums[strings.Join(key, " ")] += p.Value
	}
}
