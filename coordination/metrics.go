package coordination

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/meters"
)

const meterName = "github.com/concord-go/concord/coordination"

func isConflict(err error) bool { return errors.Is(err, leasestore.ErrConflict) }

// instruments are the metrics of a session. All but the two histograms are read from Status at
// collection.
type instruments struct {
	owner     attribute.KeyValue
	waits     metric.Float64Histogram
	calls     metric.Float64Histogram
	unobserve func() error
}

// observe registers the metrics.
func (s *Session) observe() (err error) {
	m := meters.New[Status](s.cfg.Meters, meterName)
	owner := attribute.String("owner", s.cfg.Owner)
	s.meters = &instruments{
		owner: owner,
		waits: m.Durations("concord.lease.acquire.duration",
			"From a call of Acquire or TryAcquire to its answer."),
		calls: m.Durations("concord.lease.store.duration", "Calls of the store."),
	}
	plainMetrics(m)
	lost := m.CountBy("concord.lease.lost", "Tenures that were lost.")
	calls := m.CountBy("concord.lease.store.calls", "Calls of the store that have ended.")
	who := func(Status) ([]attribute.KeyValue, bool) { return []attribute.KeyValue{owner}, true }
	s.meters.unobserve, err = m.Observe(s.Status, who, func(o metric.Observer, st Status) {
		// A series that begins with 1 has not increased: those without a value begin with 0.
		for why, name := range lossNames {
			o.ObserveInt64(lost, int64(st.Lost[Loss(why)]),
				metric.WithAttributes(owner, attribute.String("why", name)))
		}
		for _, op := range []string{loads, swaps} {
			c := st.Calls[op]
			for result, n := range map[string]uint64{"success": c.Succeeded,
				"conflict": c.Conflicted, "failure": c.Failed} {
				o.ObserveInt64(calls, int64(n), metric.WithAttributes(owner,
					attribute.String("operation", op), attribute.String("result", result)))
			}
		}
	})
	return err
}

func plainMetrics(m *meters.Set[Status]) {
	m.Gauge("concord.lease.held", "Leases that the session holds.", func(s Status) int {
		return s.Held
	})
	m.Gauge("concord.lease.near_expiry", "Leases that the session holds, and cannot renew.",
		func(s Status) int {
			return s.NearExpiry
		})
	m.Gauge("concord.lease.waiting", "Callers that wait for a lease.", func(s Status) int {
		return s.Waiting
	})
	m.Count("concord.lease.granted", "Answers to callers: granted.", func(s Status) uint64 {
		return s.Granted
	})
	m.Count("concord.lease.taken", "Answers to callers: held by another.", func(s Status) uint64 {
		return s.Taken
	})
	m.Count("concord.lease.unknown", "Answers to callers: unknown.", func(s Status) uint64 {
		return s.Unknown
	})
	m.Count("concord.lease.stalls", "Wake-ups of the session that were a quarter of a second late.",
		func(s Status) uint64 {
			return s.Stalls
		})
	m.Count("concord.lease.panics", "Panics in this library.", func(s Status) uint64 {
		return s.Panics
	})
	m.Count("concord.lease.released", "Tenures that were released.", func(s Status) uint64 {
		return s.Released
	})
}

// call records how long a call of the store took.
func (m *instruments) call(op string, took time.Duration, err error) {
	result := "success"
	switch {
	case isConflict(err):
		result = "conflict"
	case err != nil:
		result = "failure"
	}
	m.calls.Record(context.Background(), took.Seconds(), metric.WithAttributes(m.owner,
		attribute.String("operation", op), attribute.String("result", result)))
}

// waited records how long a caller of Acquire or TryAcquire waited for its answer.
func (m *instruments) waited(took time.Duration, result string) {
	m.waits.Record(context.Background(), took.Seconds(),
		metric.WithAttributes(m.owner, attribute.String("result", result)))
}
