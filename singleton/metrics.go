package singleton

import (
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/internal/meters"
)

const meterName = "github.com/concord-go/concord/singleton"

// load is what the actors of one incarnation report for the metrics.
type load struct {
	here         atomic.Bool // the instance runs at this member
	kept, queued atomic.Int64
}

// observe registers the metrics of this member, and returns a function that unregisters them.
func (s *Singleton) observe(l *binding) (unobserve func() error, err error) {
	m := meters.New[Stats](l.cfg.Meters, meterName)
	here := m.GaugeBy("concord.singleton.here", "1 at the member where the instance runs.")
	const unknown = "How long this member has known no host; 0 while it knows one."
	without := m.GaugeBy("concord.singleton.without_host", unknown, metric.WithUnit("s"))
	waiting := m.GaugeBy("concord.singleton.waiting",
		"Messages that wait at this member for an instance.")
	m.Count("concord.singleton.started", "Instances that this member has made.",
		func(s Stats) uint64 {
			return s.Started
		})
	m.Count("concord.singleton.refused", "Messages sent to the dead letters.",
		func(s Stats) uint64 {
			return s.Refused
		})
	m.Count("concord.singleton.state_lost", "States that did not reach the next instance.",
		func(s Stats) uint64 {
			return s.StateLost
		})
	m.Count("concord.singleton.panics", "Panics in this library.", func(s Stats) uint64 {
		return s.Panics
	})
	begun := time.Now()
	attrs := func() []attribute.KeyValue {
		return []attribute.KeyValue{attribute.String("singleton", l.cfg.Name),
			attribute.String("address", l.system.Address())}
	}
	who := func(Stats) ([]attribute.KeyValue, bool) { return attrs(), s.present.Load() == l }
	return m.Observe(s.Stats, who, func(o metric.Observer, _ Stats) {
		by := metric.WithAttributes(attrs()...)
		o.ObserveInt64(here, int64(meters.Flag(l.load.here.Load())), by)
		o.ObserveInt64(without, int64(s.place.missing(begun).Seconds()), by)
		o.ObserveInt64(waiting, l.load.kept.Load()+l.load.queued.Load(), by)
	})
}

// missing returns for how long no host has been known, in an incarnation that began at begun.
func (w *locations) missing(begun time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch last := w.mu.last; {
	case last.now:
		return 0
	case last.until.After(begun):
		return time.Since(last.until)
	}
	return time.Since(begun)
}
