package distributeddata

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// An operation that may wait for other members or for the disk is recorded as a child of the
// caller's span, by the caller's tracer provider, and as a value of a histogram by operation, level
// and outcome. An operation that is answered at once is not recorded and costs nothing. The caller
// of a message is its sender: see Get.Span.

// operation describes an operation for spans and histograms.
type operation struct {
	name string // empty: not measured
	at   Consistency
}

// waits reports whether an operation on a key at a level may wait.
func (c *durableKeys) waits(key string, at Consistency) bool {
	return at != Local || c.durable(key)
}

// traceable is implemented by requests that are recorded as spans.
type traceable interface {
	operation() (op operation, key string)
}

func (m *Get[T]) operation() (operation, string) {
	return operation{"get", m.At.orLocal()}, m.Key.id
}
func (m *Update[T]) operation() (operation, string) { return operation{"update", m.At}, m.Key.id }
func (m *Delete[T]) operation() (operation, string) { return operation{"delete", m.At}, m.Key.id }
func (m *Transaction) operation() (operation, string) {
	return operation{"atomically", m.At}, ""
}

// span starts the span of a call. It returns nil if the caller has no recorded span.
func (r *Replicator) span(ctx context.Context, m request) (context.Context, trace.Span) {
	above := trace.SpanFromContext(ctx)
	if !above.IsRecording() {
		return ctx, nil
	}
	t, ok := m.(traceable)
	if !ok {
		return ctx, nil
	}
	op, key := t.operation()
	if !r.durableKeys.waits(key, op.at) {
		return ctx, nil
	}
	return r.startSpan(ctx, above, op, key)
}

// startSpan starts the span of an operation below another.
func (r *Replicator) startSpan(ctx context.Context, above trace.Span, op operation,
	key string) (context.Context, trace.Span) {
	return above.TracerProvider().Tracer(meterName).Start(ctx, "concord.ddata."+op.name,
		trace.WithAttributes(
			attribute.String("concord.ddata.replicator", r.name),
			attribute.String("concord.ddata.key", key), attribute.String("concord.ddata.level",
				op.at.String()),
		))
}

// traced starts the span of a message whose sender has set one, and returns the function that ends
// it with the outcome. An update that nobody waits for has none.
func (a *replica) traced(above trace.Span, m traceable) (end func(error)) {
	end = func(error) {}
	op, key := m.operation()
	if above == nil || !a.l.r.durableKeys.waits(key, op.at) || op.at == Local && !a.asker.waits() {
		return end
	}
	defer a.guard("tracing") // the provider is the application's
	if !above.IsRecording() {
		return end
	}
	_, span := a.l.r.startSpan(trace.ContextWithSpan(context.Background(), above), above, op, key)
	return func(err error) {
		defer a.guard("tracing")
		if quorum := a.l.published.Load().of(key).quorum; quorum != nil && op.at != Local {
			span.SetAttributes(attribute.Int("concord.ddata.counted", quorum.Counted))
		}
		endSpan(span, err)
	}
}

// endSpan ends a span with the outcome of the call.
func endSpan(s trace.Span, err error) {
	outcome := outcomeOf(err)
	s.SetAttributes(attribute.String("concord.ddata.outcome", outcome))
	if q, ok := errors.AsType[*QuorumError](err); ok {
		s.SetAttributes(attribute.Int("concord.ddata.answered", q.Answered),
			attribute.Int("concord.ddata.needed", q.Needed),
			attribute.StringSlice("concord.ddata.missing", q.Missing))
	}
	if err != nil && outcome != notFound {
		s.SetStatus(codes.Error, outcome)
	}
	s.End()
}

// measured is a kind of operation with its outcome. There are few different values.
type measured struct {
	name, level, outcome string
}

// measure records the duration of an operation that may wait, when it ends.
func (a *replica) measure(p pending, err error) {
	if p.op.name == "" || elsewhere(err) || a.l.durations == nil {
		return
	}
	k := measured{p.op.name, p.op.at.kindName(), outcomeOf(err)}
	by, ok := a.measures[k]
	if !ok {
		by = []metric.RecordOption{metric.WithAttributes(
			attribute.String("replicator", a.l.cfg.Name),
			attribute.String("address", a.l.system.Address()), attribute.String("operation", k.name),
			attribute.String("level", k.level), attribute.String("outcome", k.outcome),
		)}
		a.measures[k] = by
	}
	a.l.durations.Record(context.Background(), p.d.shell.Now().Sub(p.began).Seconds(), by...)
}

// ended ends a pending operation.
func (a *replica) ended(p pending, d core.Done, err error) {
	defer func() { p.done(d, err) }() // even if the provider of the metrics panics
	defer a.guard("measuring")
	a.measure(p, err)
}

// expect marks the next operation that begins as op, to be measured if it may wait.
func (a *replica) expect(op operation, key string) {
	if a.l.r.durableKeys.waits(key, op.at) {
		a.next = op
	}
}

// kindName returns the level without its numbers.
func (c Consistency) kindName() string {
	if names := [...]string{"none", "local", "majority", "all", "linearizable", "nodes"}; int(
		c.kind()) < len(names) {
		return names[c.kind()]
	}
	return "unknown"
}

// begun returns the time at which a pending operation began, or zero if it is not measured.
func (d *domain) begun(op operation) (at time.Time) {
	if op.name != "" {
		at = d.shell.Now()
	}
	return at
}
