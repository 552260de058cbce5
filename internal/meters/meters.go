// Package meters creates OpenTelemetry instruments that are read from a status at collection time
// and cost nothing in between.
package meters

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Flag returns 1 for true and 0 for false.
func Flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// Set is the set of instruments of one meter. Their values come from a status S. It keeps the first
// error.
type Set[S any] struct {
	metric.Meter
	err   error
	all   []metric.Observable
	plain []plain[S]
}

// plain is an instrument without attributes of its own.
type plain[S any] struct {
	instrument metric.Int64Observable
	value      func(S) int64
}

// New returns a set without instruments. If provider is nil, it uses otel.GetMeterProvider().
func New[S any](provider metric.MeterProvider, name string) *Set[S] {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	return &Set[S]{Meter: provider.Meter(name)}
}

// Gauge adds a value that rises and falls.
func (m *Set[S]) Gauge(name, what string, value func(S) int,
	opts ...metric.Int64ObservableGaugeOption) {
	m.plain = append(m.plain, plain[S]{m.GaugeBy(name, what, opts...), func(s S) int64 {
		return int64(value(s))
	}})
}

// Count adds a value that only rises.
func (m *Set[S]) Count(name, what string, value func(S) uint64) {
	m.plain = append(m.plain, plain[S]{m.CountBy(name, what), func(s S) int64 {
		return int64(value(s))
	}})
}

// GaugeBy returns a gauge with attributes, which the more function of Observe must observe.
func (m *Set[S]) GaugeBy(name, what string,
	opts ...metric.Int64ObservableGaugeOption) metric.Int64Observable {
	g, err := m.Int64ObservableGauge(name, append(opts, metric.WithDescription(what))...)
	m.all = append(m.all, g)
	m.Note(err)
	return g
}

// CountBy returns a counter with attributes, which the more function of Observe must observe.
func (m *Set[S]) CountBy(name, what string,
	opts ...metric.Int64ObservableCounterOption) metric.Int64Observable {
	c, err := m.Int64ObservableCounter(name, append(opts, metric.WithDescription(what))...)
	m.all = append(m.all, c)
	m.Note(err)
	return c
}

// durations are bounds in seconds. The default ones of OpenTelemetry are meant for milliseconds.
var durations = metric.WithExplicitBucketBoundaries(
	0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
	1800, 3600)

// Durations returns a histogram of durations in seconds, which the caller records.
func (m *Set[S]) Durations(name, what string) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithDescription(what), metric.WithUnit("s"),
		durations)
	m.Note(err)
	return h
}

// Note records an error of an instrument created outside the set. Only the first one is kept.
func (m *Set[S]) Note(err error) {
	if m.err == nil {
		m.err = err
	}
}

// Observe registers the instruments and returns a function that unregisters them. At each
// collection it calls status. who returns the attributes of the status, or false if there is
// nothing to report. more observes the instruments that have attributes of their own.
func (m *Set[S]) Observe(status func() S, who func(S) ([]attribute.KeyValue, bool),
	more func(metric.Observer, S)) (unobserve func() error, err error) {
	none := func() error { return nil }
	if m.err != nil {
		return none, m.err
	}
	reg, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := status()
		by, ok := who(s)
		if !ok {
			return nil
		}
		for _, p := range m.plain {
			o.ObserveInt64(p.instrument, p.value(s), metric.WithAttributes(by...))
		}
		more(o, s)
		return nil
	}, m.all...)
	if err != nil {
		return none, err
	}
	return reg.Unregister, nil
}
