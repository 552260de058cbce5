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

// An operation that may wait, for others or for the disk, is a span below the caller's, of the caller's own tracer, and
// a value of a histogram by operation, level and outcome. One that is answered at once is neither, and costs nothing.

// operation says what an operation is, for spans and histograms.
type operation struct {
	name string // empty: it is not measured
	at   Consistency
}

// waits reports whether an operation on a key at a level may wait.
func (c *choice) waits(key string, at Consistency) bool { return at != Local || c.durable(key) }

// traceable is implemented by the requests that spans are made of.
type traceable interface {
	operation() (op operation, key string)
}

func (m *Get[T]) operation() (operation, string)    { return operation{"get", m.At}, m.Key.id }
func (m *Update[T]) operation() (operation, string) { return operation{"update", m.At}, m.Key.id }
func (m *Delete[T]) operation() (operation, string) { return operation{"delete", m.At}, m.Key.id }
func (m *Transaction) operation() (operation, string) {
	return operation{"atomically", m.At}, ""
}

// span begins the span of a call; nil if the caller has none that is recorded.
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
	if !r.choice.waits(key, op.at) {
		return ctx, nil
	}
	return above.TracerProvider().Tracer(meterName).Start(ctx, "concord.ddata."+op.name, trace.WithAttributes(
		attribute.String("concord.ddata.replicator", r.name), attribute.String("concord.ddata.key", key),
		attribute.String("concord.ddata.level", op.at.String()),
	))
}

// endSpan ends a span with what became of the call.
func endSpan(s trace.Span, err error) {
	outcome := outcomeOf(err)
	s.SetAttributes(attribute.String("concord.ddata.outcome", outcome.String()))
	if q, ok := errors.AsType[*QuorumError](err); ok {
		s.SetAttributes(attribute.Int("concord.ddata.answered", q.Answered), attribute.Int("concord.ddata.needed", q.Needed),
			attribute.StringSlice("concord.ddata.missing", q.Missing))
	}
	if err != nil && outcome != NotFound {
		s.SetStatus(codes.Error, outcome.String())
	}
	s.End()
}

// measured is a kind of operation with its outcome: one of a small number.
type measured struct {
	name, level string
	outcome     Outcome
}

// measure notes how long an operation has taken. It is called for each that may wait, at its end.
func (a *replica) measure(p pending, err error) {
	if p.op.name == "" || elsewhere(err) || a.l.durations == nil {
		return
	}
	k := measured{p.op.name, p.op.at.kindName(), outcomeOf(err)}
	by, ok := a.measures[k]
	if !ok {
		by = []metric.RecordOption{metric.WithAttributes(
			attribute.String("replicator", a.l.cfg.Name), attribute.String("node", a.l.system.Address()),
			attribute.String("operation", k.name), attribute.String("level", k.level), attribute.String("outcome", k.outcome.String()),
		)}
		a.measures[k] = by
	}
	a.l.durations.Record(context.Background(), p.d.shell.Now().Sub(p.began).Seconds(), by...)
}

// ended ends a pending operation.
func (a *replica) ended(p pending, d core.Done, err error) {
	defer func() { p.done(d, err) }() // whatever the provider of the metrics does
	defer a.guard("measuring")
	a.measure(p, err)
}

// expect has the next operation that begins be measured as op, if it may wait.
func (a *replica) expect(op operation, key string) {
	if a.l.r.choice.waits(key, op.at) {
		a.next = op
	}
}

// kindName returns the level without its numbers.
func (c Consistency) kindName() string {
	if names := [...]string{"local", "majority", "all", "linearizable", "nodes"}; int(c.kind()) < len(names) {
		return names[c.kind()]
	}
	return "unknown"
}

// begun is when a pending operation began; only those that are measured are asked.
func (d *domain) begun(op operation) (at time.Time) {
	if op.name != "" {
		at = d.shell.Now()
	}
	return at
}
