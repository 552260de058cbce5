package coordination

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const meterName = "github.com/concord-go/concord/coordination"

func isConflict(err error) bool { return errors.Is(err, ErrConflict) }

// meters are the instruments of a session. All but the two histograms are read from Status when they are
// collected.
type meters struct {
	metric.Meter
	all       []metric.Observable
	err       error
	owner     attribute.KeyValue
	waits     metric.Float64Histogram
	calls     metric.Float64Histogram
	unobserve func() error
}

// observe registers the metrics.
func (s *Session) observe() error {
	provider := s.cfg.Meters
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	m := &meters{Meter: provider.Meter(meterName), owner: attribute.String("owner", s.cfg.Owner)}
	s.meters = m
	m.waits = m.seconds("concord.lease.acquire.duration", "From a call of Acquire or TryAcquire to its answer.")
	m.calls = m.seconds("concord.lease.store.duration", "Calls of the store.")
	plain := m.plain()
	lost := m.counter("concord.lease.lost", "Tenures that were lost.")
	calls := m.counter("concord.lease.store.calls", "Calls of the store that have ended.")
	if m.err != nil {
		return m.err
	}
	reg, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		st := s.Status()
		for _, p := range plain {
			o.ObserveInt64(p.instrument, p.value(st), metric.WithAttributes(m.owner))
		}
		for why, n := range st.Lost {
			o.ObserveInt64(lost, int64(n), metric.WithAttributes(m.owner, attribute.String("why", why.String())))
		}
		for op, c := range st.Calls {
			for result, n := range map[string]uint64{"success": c.Succeeded, "conflict": c.Conflicted, "failure": c.Failed} {
				o.ObserveInt64(calls, int64(n), metric.WithAttributes(m.owner,
					attribute.String("operation", string(op)), attribute.String("result", result)))
			}
		}
		return nil
	}, m.all...)
	if err == nil {
		m.unobserve = reg.Unregister
	}
	return err
}

// plainMetric is one without further attributes.
type plainMetric struct {
	instrument metric.Int64Observable
	value      func(Status) int64
}

func (m *meters) plain() []plainMetric {
	gauge := func(name, what string, value func(Status) int) plainMetric {
		g, err := m.Int64ObservableGauge(name, metric.WithDescription(what))
		m.note(g, err)
		return plainMetric{g, func(s Status) int64 { return int64(value(s)) }}
	}
	count := func(name, what string, value func(Status) uint64) plainMetric {
		return plainMetric{m.counter(name, what), func(s Status) int64 { return int64(value(s)) }}
	}
	return []plainMetric{
		gauge("concord.lease.held", "Leases that the session holds.", func(s Status) int { return s.Held }),
		gauge("concord.lease.near_expiry", "Leases that the session holds, and cannot renew.", func(s Status) int { return s.NearExpiry }),
		gauge("concord.lease.waiting", "Callers that wait for a lease.", func(s Status) int { return s.Waiting }),
		count("concord.lease.granted", "Answers to callers: granted.", func(s Status) uint64 { return s.Granted }),
		count("concord.lease.taken", "Answers to callers: held by another.", func(s Status) uint64 { return s.Taken }),
		count("concord.lease.unknown", "Answers to callers: unknown.", func(s Status) uint64 { return s.Unknown }),
		count("concord.lease.released", "Tenures that were released.", func(s Status) uint64 { return s.Released }),
	}
}

func (m *meters) counter(name, what string) metric.Int64Observable {
	c, err := m.Int64ObservableCounter(name, metric.WithDescription(what))
	m.note(c, err)
	return c
}

func (m *meters) seconds(name, what string) metric.Float64Histogram {
	h, err := m.Float64Histogram(name, metric.WithDescription(what), metric.WithUnit("s"))
	if m.err == nil {
		m.err = err
	}
	return h
}

func (m *meters) note(o metric.Observable, err error) {
	m.all = append(m.all, o)
	if m.err == nil {
		m.err = err
	}
}

// call records how long a call of the store took.
func (m *meters) call(op Operation, took time.Duration, err error) {
	result := "success"
	switch {
	case isConflict(err):
		result = "conflict"
	case err != nil:
		result = "failure"
	}
	m.calls.Record(context.Background(), took.Seconds(), metric.WithAttributes(m.owner,
		attribute.String("operation", string(op)), attribute.String("result", result)))
}

// waited records how long a caller of Acquire or TryAcquire waited for its answer.
func (m *meters) waited(took time.Duration, result string) {
	m.waits.Record(context.Background(), took.Seconds(), metric.WithAttributes(m.owner, attribute.String("result", result)))
}
