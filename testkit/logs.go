package testkit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Log describes log lines. Unset fields match every line.
type Log struct {
	Level   slog.Leveler   // the exact level; nil matches any
	Message string         // a substring of the message
	Attrs   map[string]any // a subset of the attributes, as text; groups are joined by dots
	// Times is the exact number of such lines; 0 means at least one, and Never means none.
	Times int
}

// Never is a value of Log.Times.
const Never = -1

// lull is how long ExpectLog and ExpectNoDeadLetter wait for what must not come.
const lull = 100 * time.Millisecond

// quiet is a logger that logs nothing.
var quiet = slog.New(slog.DiscardHandler)

// NewSystem returns an actor system for a test. The system keeps its log for ExpectLog instead of
// writing it. If the test fails, it prints warnings, errors, and the panics of actors, each with
// the first line of the user's code on its stack and what the supervisor did. It is shut down at
// the end of the test.
func NewSystem(t testing.TB, options ...actor.ConfigOption) *actor.ActorSystem {
	t.Helper()
	system := actor.NewActorSystem(append([]actor.ConfigOption{WithLogs(), quickDeadLetters},
		options...)...)
	supervise(system)
	t.Cleanup(func() {
		system.Shutdown()
		if b := bookOf(system); b != nil && t.Failed() {
			for _, f := range b.failures() {
				t.Logf("system %s: %s", system.ID, f)
			}
			for _, l := range b.since(0) {
				if l.level >= slog.LevelWarn {
					t.Logf("log of %s: %s", system.ID, l)
				}
			}
		}
	})
	return system
}

// quickDeadLetters makes the goroutine started by a dead letter return soon.
func quickDeadLetters(c *actor.Config) { c.DeadLetterThrottleInterval = time.Millisecond }

// WithLogs is an option of actor.NewActorSystem that makes the system's log available to ExpectLog.
// The log is not written anywhere else.
func WithLogs() actor.ConfigOption {
	return actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		b := &book{}
		b.mu.changed = make(chan struct{})
		return slog.New(&handler{book: b})
	})
}

// ExpectLog runs during and waits until the lines described by want have been logged since it
// started. The system must come from NewSystem, WithLogs or a Cluster.
func ExpectLog(t testing.TB, system *actor.ActorSystem, want Log, during func()) {
	t.Helper()
	b := bookOf(system)
	if b == nil {
		t.Fatalf("the log of system %s is not kept: make it with testkit.NewSystem or testkit.WithLogs",
			system.ID)
		return
	}
	from := len(b.since(0))
	during()
	if want.Times >= 0 {
		b.await(from, max(1, want.Times), want)
	}
	if want.Times != 0 {
		time.Sleep(lull)
	}
	lines := b.since(from)
	n := count(lines, want)
	if want.fits(n) {
		return
	}
	story := "Nothing was logged."
	if len(lines) > 0 {
		story = "Logged, in order:"
		for _, l := range lines {
			story += "\n  " + l.String()
		}
	}
	t.Fatalf("expected log %s, got %d\n%s", want.text(), n, story)
}

// text returns a description of the expected lines.
func (w Log) text() string {
	times := "at least once"
	switch {
	case w.Times == Never:
		times = "never"
	case w.Times > 0:
		times = fmt.Sprintf("%d times", w.Times)
	}
	s := ""
	if w.Level != nil {
		s = w.Level.Level().String() + " "
	}
	s += fmt.Sprintf("%q", w.Message)
	for _, k := range sortedKeys(w.Attrs) {
		s += fmt.Sprintf(" %s=%v", k, w.Attrs[k])
	}
	return s + " " + times
}

// fits reports whether n lines meet the expectation.
func (w Log) fits(n int) bool {
	switch w.Times {
	case 0:
		return n > 0
	case Never:
		return n == 0
	}
	return n == w.Times
}

func (w Log) matches(l line) bool {
	if w.Level != nil && w.Level.Level() != l.level || !strings.Contains(l.message, w.Message) {
		return false
	}
	for k, v := range w.Attrs {
		if got, ok := l.attrs[k]; !ok || got != fmt.Sprint(v) {
			return false
		}
	}
	return true
}

func count(lines []line, want Log) (n int) {
	for _, l := range lines {
		if want.matches(l) {
			n++
		}
	}
	return n
}

// line is one log line.
type line struct {
	level   slog.Level
	message string
	attrs   map[string]string
}

func (l line) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-5s %s", l.level, l.message)
	for _, k := range sortedKeys(l.attrs) {
		b.WriteString(" " + k + "=" + l.attrs[k])
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// book stores log lines.
type book struct {
	mu struct {
		sync.Mutex
		lines   []line
		changed chan struct{}
		watch   func(line)
		failed  []string     // panics and restarts of actors
		fail    func(string) // is called with each of them
	}
}

// supervise records what supervisors do with failed actors.
func supervise(system *actor.ActorSystem) {
	b := bookOf(system)
	if b == nil {
		return
	}
	system.EventStream.Subscribe(func(e any) {
		if s, ok := e.(*actor.SupervisorEvent); ok {
			b.failure(fmt.Sprintf("actor %s: its supervisor chose the %s", name(s.Child), s.Directive))
		}
	})
}

// failure records a panic or a restart of an actor, up to a number of them.
func (b *book) failure(text string) {
	b.mu.Lock()
	full := len(b.mu.failed) >= most
	if !full {
		b.mu.failed = append(b.mu.failed, text)
	}
	fail := b.mu.fail
	b.mu.Unlock()
	if fail != nil && !full {
		fail(text)
	}
}

func (b *book) failures() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.mu.failed)
}

func bookOf(system *actor.ActorSystem) *book {
	if h, ok := system.Logger().Handler().(*handler); ok {
		return h.book
	}
	return nil
}

func (b *book) add(l line) {
	b.mu.Lock()
	b.mu.lines = append(b.mu.lines, l)
	close(b.mu.changed)
	b.mu.changed = make(chan struct{})
	watch := b.mu.watch
	b.mu.Unlock()
	if watch != nil {
		watch(l)
	}
}

func (b *book) since(from int) []line {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.mu.lines[from:])
}

// await waits until n lines match or the default timeout expires.
func (b *book) await(from, n int, want Log) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		enough, changed := count(b.mu.lines[from:], want) >= n, b.mu.changed
		b.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		}
	}
}

// handler is the slog.Handler of a book.
type handler struct {
	book   *book
	attrs  []slog.Attr // with full keys
	prefix string
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	l := line{level: r.Level, message: r.Message, attrs: map[string]string{}}
	for _, a := range h.attrs {
		l.attrs[a.Key] = text(a.Value)
	}
	r.Attrs(func(a slog.Attr) bool {
		for _, f := range flat(h.prefix, a) {
			l.attrs[f.Key] = text(f.Value)
		}
		return true
	})
	h.book.add(l)
	if r.Message == recovering {
		h.book.failure(fmt.Sprintf("actor %s panicked: %s; in %s", l.attrs["self"],
			l.attrs["reason"], panicSite()))
	}
	return nil
}

// recovering is the message that Proto.Actor logs, at Info, in the deferred function that recovers
// the panic of an actor.
const recovering = "[ACTOR] Recovering"

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		next.attrs = append(next.attrs, flat(h.prefix, a)...)
	}
	return &next
}

func (h *handler) WithGroup(group string) slog.Handler {
	if group == "" {
		return h
	}
	next := *h
	next.prefix += group + "."
	return &next
}

// flat flattens groups.
func flat(prefix string, a slog.Attr) []slog.Attr {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		return []slog.Attr{{Key: prefix + a.Key, Value: v}}
	}
	if a.Key != "" {
		prefix += a.Key + "."
	}
	var out []slog.Attr
	for _, g := range v.Group() {
		out = append(out, flat(prefix, g)...)
	}
	return out
}

// text returns the text by which an attribute is compared.
func text(v slog.Value) string {
	if pid, ok := v.Any().(*actor.PID); ok {
		return name(pid)
	}
	return fmt.Sprint(v.Any())
}
