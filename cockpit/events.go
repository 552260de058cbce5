package cockpit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/internal/cockpit/api"
)

// maxEvents is the number of events that a ring keeps.
const maxEvents = 256

// ring keeps the most recent events. It numbers events consecutively, from the time of the first.
type ring struct {
	mu  sync.Mutex
	seq uint64
	all []api.Event
}

func (r *ring) add(e api.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seq == 0 { // a process continues above its predecessor, whose events a client may have
		r.seq = uint64(max(0, time.Now().UnixMicro()))
	}
	r.seq++
	e.Seq = r.seq
	if len(r.all) == maxEvents {
		r.all = slices.Delete(r.all, 0, 1)
	}
	r.all = append(r.all, e)
}

// after returns the newest events with numbers above seq, oldest first. The second argument bounds
// the number of events.
func (r *ring) after(seq uint64, most int) []api.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, _ := slices.BinarySearchFunc(r.all, seq+1, func(e api.Event, n uint64) int {
		switch {
		case e.Seq < n:
			return -1
		case e.Seq > n:
			return 1
		}
		return 0
	})
	i = max(i, len(r.all)-most)
	return append([]api.Event{}, r.all[i:]...)
}

// Log returns a slog.Handler that passes log lines to next and keeps those of level Info and above
// as events. Use it for the logger of the node. It keeps the last 256 events, and has no cost
// between log lines.
//
// If Config.Hide or Config.HideOwners is set, events omit the attributes of their log lines,
// including the text of errors.
func (h *Handler) Log(next slog.Handler) slog.Handler { return &tap{next: next, h: h} }

// tap is a slog.Handler that records log lines as events.
type tap struct {
	next  slog.Handler
	h     *Handler
	attrs string // set by WithAttrs
}

// Enabled implements slog.Handler.
func (t *tap) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelInfo || t.next.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (t *tap) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		t.h.ring.add(t.event(r))
	}
	if !t.next.Enabled(ctx, r.Level) {
		return nil
	}
	return t.next.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t *tap) WithAttrs(attrs []slog.Attr) slog.Handler {
	u := *t
	u.next = t.next.WithAttrs(attrs)
	for _, a := range attrs {
		u.attrs += " " + text(a)
	}
	u.attrs = view.Cut(u.attrs, maxEventText)
	return &u
}

// WithGroup implements slog.Handler.
func (t *tap) WithGroup(name string) slog.Handler {
	u := *t
	u.next = t.next.WithGroup(name)
	return &u
}

// maxEventText bounds the text of an event.
const maxEventText = 400

func (t *tap) event(r slog.Record) api.Event {
	e := api.Event{At: r.Time.UTC(), Level: "info", From: "log", Text: r.Message}
	if r.Time.IsZero() {
		e.At = time.Now().UTC()
	}
	switch {
	case r.Level >= slog.LevelError:
		e.Level = "error"
	case r.Level >= slog.LevelWarn:
		e.Level = "warn"
	}
	if !t.h.hidden.any() && !t.h.cfg.HideOwners {
		r.Attrs(func(a slog.Attr) bool {
			e.Text += " " + text(a)
			return len(e.Text) < maxEventText
		})
		e.Text += t.attrs
	}
	e.Text = view.Cut(strings.ToValidUTF8(e.Text, "�"), maxEventText)
	return e
}

// text formats an attribute. Values of the application may panic in their methods; their text is a
// question mark.
func text(a slog.Attr) (s string) {
	defer func() {
		if recover() != nil {
			s = a.Key + "=?"
		}
	}()
	return view.Cut(fmt.Sprintf("%s=%v", a.Key, a.Value.Resolve().Any()), maxEventText)
}
