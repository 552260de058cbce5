package node

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/meters"
)

const meterName = "github.com/concord-go/concord/node"

// nodeStatus is what the metrics of a member show.
type nodeStatus struct {
	address                  string // of the last incarnation; empty before the first is up
	ready, hosts             bool
	members, missing, beyond int
	incarnation              int
	splits                   uint64
	refusals                 map[string]uint64
}

// started is when this process started, roughly. The time since then is by its monotonic clock.
var started = time.Now()

// nodeStatus returns the present status.
func (r *runner) status() nodeStatus {
	h := r.cfg.Health
	h.mu.Lock()
	system := h.mu.system
	s := nodeStatus{address: h.mu.address, incarnation: h.mu.incarnation, splits: h.mu.splits}
	h.mu.Unlock()
	s.refusals = Refusals()
	if system == nil {
		return s
	}
	members := membership.Attach(system)
	if v := members.View(); v != nil {
		s.members = len(v.Members)
	}
	others, _ := members.Split()
	s.missing, s.beyond = len(members.Lost()), len(others)
	s.splits += members.Stats().Splits
	s.hosts = gate.Of(system).State().Open
	s.ready = h.Ready() == nil
	return s
}

// observe registers the metrics of the process, and returns a function that unregisters them.
func (r *runner) observe() (unobserve func() error, err error) {
	m := meters.New[nodeStatus](r.cfg.Meters, meterName)
	m.Gauge("concord.node.ready", "1 if /readyz answers 200.", func(s nodeStatus) int {
		return meters.Flag(s.ready)
	})
	m.Gauge("concord.node.hosts", "1 if singletons and shards may run here.",
		func(s nodeStatus) int {
			return meters.Flag(s.hosts)
		})
	m.Gauge("concord.node.members", "Members that this one sees, itself included.",
		func(s nodeStatus) int {
			return s.members
		})
	m.Gauge("concord.node.missing", "Members that were seen and did not leave in order.",
		func(s nodeStatus) int {
			return s.missing
		})
	m.Gauge("concord.node.split", "Running members that do not list this one, or are not listed.",
		func(s nodeStatus) int {
			return s.beyond
		})
	m.Gauge("concord.node.incarnation", "Number of the incarnation of the member in this process, from 1.",
		func(s nodeStatus) int {
			return s.incarnation
		})
	m.Count("concord.node.splits", "Splits of the cluster that this member has noticed.",
		func(s nodeStatus) uint64 {
			return s.splits
		})
	refused := m.CountBy("concord.node.refused", "Refusals of the guard of remoting, by reason.")
	const own = "Time since the process started, by its own clock: the rate is that of the clock."
	uptime := m.CountBy("concord.node.uptime", own, metric.WithUnit("s"))
	who := func(s nodeStatus) ([]attribute.KeyValue, bool) {
		return []attribute.KeyValue{attribute.String("address", s.address)}, s.address != ""
	}
	return m.Observe(r.status, who, func(o metric.Observer, s nodeStatus) {
		o.ObserveInt64(uptime, int64(time.Since(started).Seconds()),
			metric.WithAttributes(attribute.String("address", s.address)))
		for reason, n := range s.refusals {
			o.ObserveInt64(refused, int64(n), metric.WithAttributes(
				attribute.String("address", s.address), attribute.String("reason", reason)))
		}
	})
}
