package distributeddata

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/internal/meters"
)

const meterName = "github.com/concord-go/concord/distributeddata"

// histograms are the metrics that are not read from the Status.
type histograms struct {
	durations   metric.Float64Histogram // of operations
	convergence metric.Float64Histogram
}

// observe registers the metrics. It returns a function that unregisters them and the histograms.
func (r *Replicator) observe(provider metric.MeterProvider) (unobserve func() error, h histograms,
	err error) {
	m := meters.New[Status](provider, meterName)
	plainMetrics(m)
	lag := m.GaugeBy("concord.ddata.lag", "Updates that a member has not confirmed.")
	messages := m.CountBy("concord.ddata.sent.messages", "Messages to other replicas.")
	bytes := m.CountBy("concord.ddata.sent.bytes", "Payload of messages to other replicas.",
		metric.WithUnit("By"))
	near := m.GaugeBy("concord.ddata.near_limit", "Whether more than half of a limit is used.")
	who := func(s Status) ([]attribute.KeyValue, bool) {
		return []attribute.KeyValue{attribute.String("replicator", r.name),
				attribute.String("address", s.Address)},
			s.Replica != 0 // otherwise it has not started
	}
	h.durations = m.Durations("concord.ddata.operation.duration",
		"Duration of operations that may wait for other members or for the disk.")
	h.convergence = m.Durations("concord.ddata.convergence",
		"Time from an update here until a majority, or all, of the counted members have confirmed it; a sample of the updates.")
	unobserve, err = m.Observe(r.Status, who, func(o metric.Observer, s Status) {
		by, _ := who(s)
		for member, n := range s.Lag {
			o.ObserveInt64(lag, int64(n),
				metric.WithAttributes(append(by, attribute.String("member", member))...))
		}
		for _, name := range limitNames {
			o.ObserveInt64(near, int64(meters.Flag(slices.Contains(s.NearLimits, name[0]))),
				metric.WithAttributes(append(by, attribute.String("setting", name[0]))...))
		}
		for kind, t := range s.Sent {
			kind := metric.WithAttributes(append(by, attribute.String("kind", kind))...)
			o.ObserveInt64(messages, int64(t.Messages), kind)
			o.ObserveInt64(bytes, int64(t.Bytes), kind)
		}
	})
	return unobserve, h, err
}

func plainMetrics(m *meters.Set[Status]) {
	m.Gauge("concord.ddata.ready", "Whether the replica counts in quorums.", func(s Status) int {
		return meters.Flag(s.Ready)
	})
	m.Gauge("concord.ddata.members", "Replicas in view.", func(s Status) int { return s.Members })
	m.Gauge("concord.ddata.counted", "Members counted in majorities.", func(s Status) int {
		return s.Counted
	})
	m.Gauge("concord.ddata.missing", "Counted members that are not in view.", func(s Status) int {
		return len(s.Missing)
	})
	m.Gauge("concord.ddata.other_durable", "Members with a different list of durable keys.",
		func(s Status) int {
			return len(s.OtherDurable)
		})
	m.Gauge("concord.ddata.other_expiry", "Members with different times to live.",
		func(s Status) int {
			return len(s.OtherExpiry)
		})
	durableMetrics(m)
	m.Gauge("concord.ddata.keys", "Entries.", func(s Status) int { return s.Keys })
	m.Gauge("concord.ddata.filled", "Keys or events received of the answer in flight.",
		func(s Status) int {
			return int(s.Filled)
		})
	m.Gauge("concord.ddata.to_fill", "Keys or events of the answer in flight.", func(s Status) int {
		return int(s.ToFill)
	})
	m.Gauge("concord.ddata.log.bytes", "Memory of the event log.", func(s Status) int {
		return s.LogBytes
	}, metric.WithUnit("By"))
	m.Count("concord.ddata.expired", "Entries that this member deleted because they had expired.",
		func(s Status) uint64 {
			return s.Expired
		})
	m.Count("concord.ddata.touches", "Uses sent to other members that were not part of an update.",
		func(s Status) uint64 {
			return s.Touches
		})
	m.Count("concord.ddata.updates",
		"Updates made here; updates without a waiting caller may be counted together.",
		func(s Status) uint64 {
			return s.Updates
		})
	m.Count("concord.ddata.applied", "Updates of other members applied here.",
		func(s Status) uint64 {
			return s.Applied
		})
	m.Count("concord.ddata.repairs", "Requests for missed updates that were answered.",
		func(s Status) uint64 {
			return s.Repairs
		})
	m.Count("concord.ddata.bulks", "Those answers that were a whole state.", func(s Status) uint64 {
		return s.Bulks
	})
	m.Count("concord.ddata.diverged", "Replicas found to differ at an equal vector.",
		func(s Status) uint64 {
			return s.Diverged
		})
	m.Count("concord.ddata.corrupted", "Entries whose memory was found corrupted.",
		func(s Status) uint64 {
			return s.Corrupted
		})
	m.Count("concord.ddata.mended",
		"States taken from other members after this replica was outvoted.", func(s Status) uint64 {
			return s.Mended
		})
	m.Count("concord.ddata.malformed", "Messages that could not be decoded.",
		func(s Status) uint64 {
			return s.Malformed
		})
	m.Count("concord.ddata.strangers", "Messages from senders that are not in view.",
		func(s Status) uint64 {
			return s.Strangers
		})
	m.Count("concord.ddata.faults",
		"Functions of the application that panicked or exited their goroutine.",
		func(s Status) uint64 {
			return s.Faults
		})
	m.Count("concord.ddata.panics", "Panics in this library that interrupted the replicator.",
		func(s Status) uint64 {
			return s.Panics
		})
	m.Count("concord.ddata.waiting", "Updates that arrived before updates that they depend on.",
		func(s Status) uint64 {
			return s.Waiting
		})
}

// durableMetrics registers the metrics of durable keys. They are 0 without Config.Durable.
func durableMetrics(m *meters.Set[Status]) {
	gauge := func(name, what string, of func(*DurableStatus) int,
		opts ...metric.Int64ObservableGaugeOption) {
		m.Gauge("concord.ddata.durable."+name, what, func(s Status) int {
			if s.Durable == nil {
				return 0
			}
			return of(s.Durable)
		}, opts...)
	}
	gauge("ready", "Whether the replica counts in quorums of durable keys.",
		func(s *DurableStatus) int {
			return meters.Flag(s.Ready)
		})
	gauge("working", "Whether the disk accepts changes.", func(s *DurableStatus) int {
		return meters.Flag(s.Disk == "working")
	})
	gauge("keys", "Durable entries.", func(s *DurableStatus) int { return s.Keys })
	gauge("unsaved", "Changes not yet on the disk.", func(s *DurableStatus) int {
		return s.Unsaved
	})
	gauge("batches", "Batches written since the start.", func(s *DurableStatus) int {
		return int(s.Batches)
	})
	gauge("rows", "Rows read at the start.", func(s *DurableStatus) int { return int(s.Rows) })
	gauge("holes", "Rows that could not be read at the start.", func(s *DurableStatus) int {
		return s.Holes
	})
}
