package distributeddata

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// limit identifies one of the limits of Config.
type limit int

const (
	maxEntries limit = iota
	maxElements
	maxBytes
	maxSubscriptions
	maxOperations
	limitCount
)

// limitNames are the names of the settings and the units they count.
var limitNames = [limitCount][2]string{
	{"MaxEntries", "entries"}, {"MaxElements", "elements in a value"},
	{"MaxBytes", "bytes in a value"},
	{"MaxSubscriptions", "subscriptions"}, {"MaxOperations", "pending operations"},
}

func (c *Config) limits() [limitCount]*int {
	return [...]*int{&c.MaxEntries, &c.MaxElements, &c.MaxBytes, &c.MaxSubscriptions,
		&c.MaxOperations}
}

// nearFor is how long a limit is reported as near, and the shortest time between two log lines
// about it.
const nearFor = time.Minute

// nearness holds the last time at which half of each limit was exceeded.
type nearness [limitCount]atomic.Int64 // Unix time in nanoseconds; 0: never

// of returns the names of the limits that are near.
func (n *nearness) of(now time.Time) (names []string) {
	for l := range n {
		if at := n[l].Load(); at != 0 && now.Sub(time.Unix(0, at)) < nearFor {
			names = append(names, limitNames[l][0])
		}
	}
	return names
}

// within returns an error if n exceeds a limit. Above half of the limit it reports it as near.
func (l *binding) within(of limit, n int, key string) error {
	most := *l.cfg.limits()[of]
	if n <= most/2 {
		return nil
	}
	l.near(of, n, most, key)
	if n <= most {
		return nil
	}
	text := fmt.Sprintf("%v: %s is %d, and this would be %d %s", ErrLimit, limitNames[of][0],
		most, n, limitNames[of][1])
	if key != "" {
		text = fmt.Sprintf("key %q: %s", key, text)
	}
	return &limitError{text}
}

// limitError is an ErrLimit. Its type is known without calling a method of the error, which may be
// the application's.
type limitError struct{ text string }

func (e *limitError) Error() string { return e.text }

// Unwrap makes it an ErrLimit.
func (e *limitError) Unwrap() error { return ErrLimit }

// near records that half of a limit has been exceeded, and logs it at most once a minute.
func (l *binding) near(of limit, n, most int, key string) {
	now := l.ttls.clock.Now().UnixNano()
	l.r.near[of].Store(now)
	was := l.warned[of].Load()
	if was != 0 && now-was < int64(nearFor) || !l.warned[of].CompareAndSwap(was, now) {
		return
	}
	l.system.Logger().Warn("more than half of a limit is used",
		slog.String("replicator", l.cfg.Name), slog.String("setting", limitNames[of][0]),
		slog.Int("limit", most), slog.Int("used", n), slog.String("key", key))
}

// fits checks the limits for an entry that an update has changed from was to is. It adds new
// entries to added.
func (l *binding) fits(key string, was, is causal.Store, added *int) error {
	was, is = content(was), content(is)
	if n := is.Len(); n > was.Len() {
		if err := l.within(maxElements, n, key); err != nil {
			return err
		}
		if n > causal.MaxPaths { // MaxElements is larger
			return &limitError{fmt.Sprintf("key %q: %v: a value holds at most %d elements, and this would be %d; a ShardedMap or ShardedSet holds more",
				key, ErrLimit, causal.MaxPaths, n)}
		}
	}
	if !was.Empty() || is.Empty() {
		return nil
	}
	*added++
	n := *added
	return l.within(maxEntries, n+l.count(), key)
}

// admit returns an error if too many operations are pending. Operations that are answered at once
// do not count.
func (a *replica) admit(at Consistency, key string) error {
	if at == Local && !a.l.r.durableKeys.durable(key) {
		return nil
	}
	return a.l.within(maxOperations, len(a.pending)+1, "")
}
