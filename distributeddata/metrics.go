package distributeddata

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const meterName = "github.com/concord-go/concord/distributeddata"

// observe registers the metrics. They are read from Status when they are collected, and cost nothing
// in between.
func (r *Replicator) observe() error {
	r.unobserve = func() error { return nil }
	provider := r.cfg.Meters
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	m := &meters{Meter: provider.Meter(meterName)}
	plain := m.plain()
	lag := m.gauge("concord.ddata.lag", "Updates that a member is not known to have seen.")
	messages := m.counter("concord.ddata.sent.messages", "Messages to other replicas.")
	bytes := m.counter("concord.ddata.sent.bytes", "Payload of messages to other replicas.", metric.WithUnit("By"))
	if m.err != nil {
		return m.err
	}
	reg, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := r.Status()
		if s.Replica == 0 {
			return nil // does not run yet
		}
		who := []attribute.KeyValue{attribute.String("replicator", r.cfg.Name), attribute.String("node", s.Address)}
		for _, p := range plain {
			o.ObserveInt64(p.instrument, p.value(s), metric.WithAttributes(who...))
		}
		for member, n := range s.Lag {
			o.ObserveInt64(lag, int64(n), metric.WithAttributes(append(who, attribute.String("member", member))...))
		}
		for kind, t := range s.Sent {
			by := metric.WithAttributes(append(who, attribute.String("kind", kind))...)
			o.ObserveInt64(messages, int64(t.Messages), by)
			o.ObserveInt64(bytes, int64(t.Bytes), by)
		}
		return nil
	}, m.all...)
	if err == nil {
		r.unobserve = reg.Unregister
	}
	return err
}

// meters makes instruments and keeps the first error.
type meters struct {
	metric.Meter
	all []metric.Observable
	err error
}

// plainMetric is one without further attributes.
type plainMetric struct {
	instrument metric.Int64Observable
	value      func(Status) int64
}

func (m *meters) plain() []plainMetric {
	count := func(name, what string, value func(Status) uint64) plainMetric {
		return plainMetric{m.counter(name, what), func(s Status) int64 { return int64(value(s)) }}
	}
	gauge := func(name, what string, value func(Status) int64, opts ...metric.Int64ObservableGaugeOption) plainMetric {
		return plainMetric{m.gauge(name, what, opts...), value}
	}
	return []plainMetric{
		gauge("concord.ddata.ready", "Whether the replica counts in quorums.", func(s Status) int64 {
			if s.Ready {
				return 1
			}
			return 0
		}),
		gauge("concord.ddata.members", "Replicas in view.", func(s Status) int64 { return int64(s.Members) }),
		gauge("concord.ddata.keys", "Entries.", func(s Status) int64 { return int64(s.Keys) }),
		gauge("concord.ddata.filled", "Keys or events of the answer under way that are here.", func(s Status) int64 { return int64(s.Filled) }),
		gauge("concord.ddata.to_fill", "Keys or events of the answer under way.", func(s Status) int64 { return int64(s.ToFill) }),
		gauge("concord.ddata.log.bytes", "Memory of the event log.", func(s Status) int64 { return int64(s.LogBytes) }, metric.WithUnit("By")),
		count("concord.ddata.updates", "Updates made here; those that nobody waited for count together.", func(s Status) uint64 { return s.Updates }),
		count("concord.ddata.applied", "Updates of others applied here.", func(s Status) uint64 { return s.Applied }),
		count("concord.ddata.repairs", "Answers to requests for what was missed.", func(s Status) uint64 { return s.Repairs }),
		count("concord.ddata.bulks", "Answers that were a state.", func(s Status) uint64 { return s.Bulks }),
		count("concord.ddata.diverged", "Replicas found to hold something else at an equal vector.", func(s Status) uint64 { return s.Diverged }),
		count("concord.ddata.rotten", "Entries whose memory had changed by itself.", func(s Status) uint64 { return s.Rotten }),
		count("concord.ddata.mended", "States taken from others after being outvoted.", func(s Status) uint64 { return s.Mended }),
		count("concord.ddata.malformed", "Messages that could not be read.", func(s Status) uint64 { return s.Malformed }),
		count("concord.ddata.strangers", "Messages from outside the view.", func(s Status) uint64 { return s.Strangers }),
		count("concord.ddata.waiting", "Updates that came before what they follow.", func(s Status) uint64 { return s.Waiting }),
	}
}

func (m *meters) gauge(name, what string, opts ...metric.Int64ObservableGaugeOption) metric.Int64Observable {
	g, err := m.Int64ObservableGauge(name, append(opts, metric.WithDescription(what))...)
	m.note(g, err)
	return g
}

func (m *meters) counter(name, what string, opts ...metric.Int64ObservableCounterOption) metric.Int64Observable {
	c, err := m.Int64ObservableCounter(name, append(opts, metric.WithDescription(what))...)
	m.note(c, err)
	return c
}

func (m *meters) note(o metric.Observable, err error) {
	m.all = append(m.all, o)
	if m.err == nil {
		m.err = err
	}
}
