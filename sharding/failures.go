package sharding

import (
	"log/slog"
	"sync"
	"time"
)

// failuresEvery is the least time between two log lines about entities that could not be created,
// of one kind of failure.
const failuresEvery = 10 * time.Second

// kind is a kind of failure to create an entity.
type kind int

const (
	returnedNil kind = iota
	panicked
	kinds
)

// failures logs entities that could not be created. A fault that most entities notice, as a lost
// majority, makes one line, and one in each failuresEvery that counts those in between. The zero
// value is ready to use.
type failures struct {
	mu   sync.Mutex
	last [kinds]struct {
		logged   time.Time
		unlogged int // failures since then
	}
}

// note counts a failure. It reports whether it is due to be logged, and how many of its kind have
// not been logged since the last line.
func (f *failures) note(k kind, now time.Time) (unlogged int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &f.last[k]
	if !l.logged.IsZero() && now.Sub(l.logged) < failuresEvery {
		l.unlogged++
		return 0, false
	}
	unlogged, l.logged, l.unlogged = l.unlogged, now, 0
	return unlogged, true
}

// failed logs that an entity could not be created. A function that returns nil says so on purpose,
// so that is a warning.
func (l *life) failed(c *cell, k kind, why any) {
	unlogged, due := l.failures.note(k, l.clock.Now())
	if !due {
		return
	}
	attrs := []any{slog.String("entity", c.id), slog.Any("reason", why),
		slog.Int("unlogged", unlogged)}
	if k == panicked {
		c.place.log().Error("entity could not be created", attrs...)
		return
	}
	c.place.log().Warn("entity could not be created", attrs...)
}
