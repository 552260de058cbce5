package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// patience is how long a caller waits for the handler of the application.
	patience = time.Second
	// most is how many records wait for a handler that does not return. Later ones are dropped.
	most = 1000
)

// Bounded returns a logger that passes records to l one after the other. A call waits until its
// record has been handled, so that records are in order and none is missing at the end of the
// process; but if the handler of l has not returned for a second, nobody waits until it does. It
// then gets a record that says so. A panic of the handler affects nothing. If l is nil, it is
// slog.Default.
func Bounded(l *slog.Logger) *slog.Logger {
	if l == nil {
		l = slog.Default()
	}
	if _, ok := l.Handler().(handler); ok {
		return l
	}
	return slog.New(handler{l.Handler(), &queue{plain: l.Handler()}})
}

// Blocked returns for how long the handler of a logger that Bounded returned has not returned; 0 if
// nobody had to give up waiting for it.
func Blocked(l *slog.Logger) time.Duration {
	h, ok := l.Handler().(handler)
	if !ok {
		return 0
	}
	h.q.mu.Lock()
	defer h.q.mu.Unlock()
	if h.q.late.IsZero() {
		return 0
	}
	return time.Since(h.q.late)
}

// handler is the handler of a bounded logger. Those of its With and WithGroup share the queue.
type handler struct {
	slog.Handler
	q *queue
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	done := make(chan struct{})
	if !h.q.add(record{r.Clone(), h.Handler, context.WithoutCancel(ctx), done}) {
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		h.q.giveUp()
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.q}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.q}
}

// record is a record on its way to a handler of the application.
type record struct {
	slog.Record
	to   slog.Handler
	ctx  context.Context
	done chan struct{} // closed when the handler has returned
}

// handle calls the handler, which may also panic or end the goroutine.
func (r record) handle() {
	defer close(r.done)
	defer func() { _ = recover() }()
	_ = r.to.Handle(r.ctx, r.Record)
}

// queue holds the records of one logger until its handler has returned from those before them.
type queue struct {
	plain slog.Handler

	mu      sync.Mutex
	waiting []record
	running bool      // a goroutine passes records to the handler
	began   time.Time // when the handler was called with the present record
	late    time.Time // began of the record for which a caller gave up; zero: nobody did
	dropped int       // since late
}

// add takes a record, and reports whether its sender should wait for done.
func (q *queue) add(r record) (wait bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait = q.late.IsZero()
	if !wait && len(q.waiting) >= most {
		q.dropped++
		return false
	}
	q.waiting = append(q.waiting, r)
	if !q.running {
		q.running = true
		go q.run()
	}
	return wait
}

// giveUp records that nobody waits until the handler has taken all records.
func (q *queue) giveUp() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running && q.late.IsZero() {
		q.late, q.dropped = q.began, 0
	}
}

// run passes all records that wait to the handler. If that ends the goroutine, another one passes
// on the rest.
func (q *queue) run() {
	over := false
	defer func() {
		if !over {
			go q.run()
		}
	}()
	for r, ok := q.next(); ok; r, ok = q.next() {
		r.handle()
	}
	over = true
}

// next returns the next record. If there is none, the run is over.
func (q *queue) next() (r record, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.waiting) > 0:
		r, q.waiting = q.waiting[0], q.waiting[1:]
	case !q.late.IsZero():
		r = q.report()
		q.late = time.Time{}
	default:
		q.waiting, q.running = nil, false
		return record{}, false
	}
	q.began = time.Now()
	return r, true
}

// report returns the record about a handler that did not return in time.
func (q *queue) report() record {
	now := time.Now()
	r := slog.NewRecord(now, slog.LevelWarn, "the log did not take lines for a while", 0)
	r.AddAttrs(slog.Duration("for", now.Sub(q.late)), slog.Int("dropped", q.dropped),
		slog.String("then", "lines of this time came late, or are missing"),
		slog.String("check", "where the log goes: a pipe that nobody reads, a slow disk"))
	return record{r, q.plain, context.Background(), make(chan struct{})}
}
