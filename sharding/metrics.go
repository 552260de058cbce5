package sharding

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/internal/meters"
)

const meterName = "github.com/concord-go/concord/sharding"

// observe registers the metrics of this member, and returns a function that unregisters them.
func (r *region) observe(l *binding, provider metric.MeterProvider) (unobserve func() error,
	err error) {
	m := meters.New[Stats](provider, meterName)
	shards := m.GaugeBy("concord.sharding.shards", "Shards by state, as this member sees them.")
	entities := m.GaugeBy("concord.sharding.entities", "Entities that run at this member.")
	waiting := m.GaugeBy("concord.sharding.waiting",
		"Messages of this member that wait for a shard.")
	held := m.GaugeBy("concord.sharding.held",
		"Messages that wait at this member for entities that do not run yet.")
	m.Count("concord.sharding.refused", "Messages returned or sent to the dead letters.",
		func(s Stats) uint64 {
			return s.Refused
		})
	m.Count("concord.sharding.dropped", "Messages of other regions that were rejected.",
		func(s Stats) uint64 {
			return s.Dropped
		})
	m.Count("concord.sharding.ignored", "Messages of the protocol that could not be used.",
		func(s Stats) uint64 {
			return s.Ignored
		})
	m.Count("concord.sharding.started", "Incarnations of entities.", func(s Stats) uint64 {
		return s.Started
	})
	m.Count("concord.sharding.passivated", "Entities asked to stop while their shard stayed.",
		func(s Stats) uint64 {
			return s.Passivated
		})
	m.Count("concord.sharding.failed",
		"Incarnations that could not be created, or panicked too often.", func(s Stats) uint64 {
			return s.Failed
		})
	m.Count("concord.sharding.redelivered",
		"Messages of Deliver that may have been handled before.", func(s Stats) uint64 {
			return s.Redelivered
		})
	m.Count("concord.sharding.panics", "Panics in this library.", func(s Stats) uint64 {
		return s.Panics
	})
	delivering := m.GaugeBy("concord.sharding.delivering",
		"Messages of Deliver of this member that are not confirmed.")
	who := func(Stats) ([]attribute.KeyValue, bool) {
		return []attribute.KeyValue{attribute.String("type", r.typ),
			attribute.String("address", l.system.Address())}, r.present.Load() == l
	}
	return m.Observe(r.Stats, who, func(o metric.Observer, st Stats) {
		by, _ := who(st)
		s := l.status()
		for _, state := range []State{Elsewhere, Stashing, AwaitingLease, Active, HandingOff} {
			o.ObserveInt64(shards, int64(s.Count(state)),
				metric.WithAttributes(append(by, attribute.String("state", state.String()))...))
		}
		wait, hold := 0, 0
		for _, sh := range s.Shards {
			wait += sh.Waiting
			hold += sh.Held
		}
		o.ObserveInt64(held, int64(hold), metric.WithAttributes(by...))
		o.ObserveInt64(entities, int64(s.Entities()), metric.WithAttributes(by...))
		o.ObserveInt64(delivering, r.delivering.Load(), metric.WithAttributes(by...))
		o.ObserveInt64(waiting, int64(wait), metric.WithAttributes(by...))
	})
}

// check returns nil while this member can find entities: it is up, and has heard a coordinator. The
// readiness check of the node calls it.
func (l *binding) check() error {
	select {
	case <-l.running:
	default:
		return errors.New("this member is not listed in its own view yet")
	}
	switch {
	case l.outvoted() != "":
		return fmt.Errorf("most members have other settings: %s", l.outvoted())
	case l.orphan.Load():
		return errors.New("this member is cut off from the coordinator of its shards")
	case !l.heard.Load():
		return errors.New("no coordinator of shards has been heard")
	}
	return nil
}
