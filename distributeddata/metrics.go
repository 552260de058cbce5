package distributeddata

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/internal/meters"
)

const meterName = "github.com/concord-go/concord/distributeddata"

// observe registers the metrics, and returns how to end them, and the histogram of how long operations take.
func (r *Replicator) observe(provider metric.MeterProvider) (unobserve func() error, durations metric.Float64Histogram, err error) {
	m := meters.New[Status](provider, meterName)
	plainMetrics(m)
	lag := m.GaugeBy("concord.ddata.lag", "Updates that a member is not known to have seen.")
	messages := m.CountBy("concord.ddata.sent.messages", "Messages to other replicas.")
	bytes := m.CountBy("concord.ddata.sent.bytes", "Payload of messages to other replicas.", metric.WithUnit("By"))
	near := m.GaugeBy("concord.ddata.near_limit", "Whether more than half of a limit is used.")
	who := func(s Status) ([]attribute.KeyValue, bool) {
		return []attribute.KeyValue{attribute.String("replicator", r.name), attribute.String("node", s.Address)},
			s.Replica != 0 // else it does not run yet
	}
	durations, err = m.Float64Histogram("concord.ddata.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of operations that may wait for others or for the disk."))
	m.Note(err)
	unobserve, err = m.Observe(r.Status, who, func(o metric.Observer, s Status) {
		by, _ := who(s)
		for member, n := range s.Lag {
			o.ObserveInt64(lag, int64(n), metric.WithAttributes(append(by, attribute.String("member", member))...))
		}
		for _, name := range limitNames {
			o.ObserveInt64(near, int64(flag(slices.Contains(s.NearLimits, name[0]))), metric.WithAttributes(append(by, attribute.String("setting", name[0]))...))
		}
		for kind, t := range s.Sent {
			kind := metric.WithAttributes(append(by, attribute.String("kind", kind))...)
			o.ObserveInt64(messages, int64(t.Messages), kind)
			o.ObserveInt64(bytes, int64(t.Bytes), kind)
		}
	})
	return unobserve, durations, err
}

func plainMetrics(m *meters.Set[Status]) {
	m.Gauge("concord.ddata.ready", "Whether the replica counts in quorums.", func(s Status) int { return flag(s.Ready) })
	m.Gauge("concord.ddata.members", "Replicas in view.", func(s Status) int { return s.Members })
	m.Gauge("concord.ddata.counted", "Members that majorities are counted in.", func(s Status) int { return s.Counted })
	m.Gauge("concord.ddata.missing", "Members that are counted and not in view.", func(s Status) int { return len(s.Missing) })
	m.Gauge("concord.ddata.other_durable", "Members that list other durable keys.", func(s Status) int { return len(s.OtherDurable) })
	durableMetrics(m)
	m.Gauge("concord.ddata.keys", "Entries.", func(s Status) int { return s.Keys })
	m.Gauge("concord.ddata.filled", "Keys or events of the answer under way that are here.", func(s Status) int { return int(s.Filled) })
	m.Gauge("concord.ddata.to_fill", "Keys or events of the answer under way.", func(s Status) int { return int(s.ToFill) })
	m.Gauge("concord.ddata.log.bytes", "Memory of the event log.", func(s Status) int { return s.LogBytes }, metric.WithUnit("By"))
	m.Count("concord.ddata.expired", "Entries deleted here since they had not been used for their time.", func(s Status) uint64 { return s.Expired })
	m.Count("concord.ddata.touches", "Uses told to others that were no part of an update.", func(s Status) uint64 { return s.Touches })
	m.Count("concord.ddata.updates", "Updates made here; those that nobody waited for count together.", func(s Status) uint64 { return s.Updates })
	m.Count("concord.ddata.applied", "Updates of others applied here.", func(s Status) uint64 { return s.Applied })
	m.Count("concord.ddata.repairs", "Answers to requests for what was missed.", func(s Status) uint64 { return s.Repairs })
	m.Count("concord.ddata.bulks", "Answers that were a state.", func(s Status) uint64 { return s.Bulks })
	m.Count("concord.ddata.diverged", "Replicas found to hold something else at an equal vector.", func(s Status) uint64 { return s.Diverged })
	m.Count("concord.ddata.rotten", "Entries whose memory had changed by itself.", func(s Status) uint64 { return s.Rotten })
	m.Count("concord.ddata.mended", "States taken from others after being outvoted.", func(s Status) uint64 { return s.Mended })
	m.Count("concord.ddata.malformed", "Messages that could not be read.", func(s Status) uint64 { return s.Malformed })
	m.Count("concord.ddata.strangers", "Messages from outside the view.", func(s Status) uint64 { return s.Strangers })
	m.Count("concord.ddata.faults", "Functions of the application that panicked or ended their goroutine.", func(s Status) uint64 { return s.Faults })
	m.Count("concord.ddata.panics", "Bugs of this library that interrupted the replicator.", func(s Status) uint64 { return s.Panics })
	m.Count("concord.ddata.waiting", "Updates that came before what they follow.", func(s Status) uint64 { return s.Waiting })
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// durableMetrics are 0 without Config.Durable.
func durableMetrics(m *meters.Set[Status]) {
	gauge := func(name, what string, of func(*DurableStatus) int, opts ...metric.Int64ObservableGaugeOption) {
		m.Gauge("concord.ddata.durable."+name, what, func(s Status) int {
			if s.Durable == nil {
				return 0
			}
			return of(s.Durable)
		}, opts...)
	}
	gauge("ready", "Whether the replica counts in quorums of durable keys.", func(s *DurableStatus) int { return flag(s.Ready) })
	gauge("working", "Whether the disk takes changes.", func(s *DurableStatus) int { return flag(s.Disk == "working") })
	gauge("keys", "Durable entries.", func(s *DurableStatus) int { return s.Keys })
	gauge("unsaved", "Changes that are not on the disk yet.", func(s *DurableStatus) int { return s.Unsaved })
	gauge("batches", "Batches written since the start.", func(s *DurableStatus) int { return int(s.Batches) })
	gauge("rows", "Rows read at the start.", func(s *DurableStatus) int { return int(s.Rows) })
	gauge("holes", "Rows that could not be read at the start.", func(s *DurableStatus) int { return s.Holes })
}
