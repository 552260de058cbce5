package distributeddata

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// limit is one of the bounds that Config sets.
type limit int

const (
	maxEntries limit = iota
	maxElements
	maxSubscriptions
	maxOperations
	limitCount
)

// limitNames are the names of the settings, and what they count.
var limitNames = [limitCount][2]string{
	{"MaxEntries", "entries"}, {"MaxElements", "elements in a value"},
	{"MaxSubscriptions", "subscriptions"}, {"MaxOperations", "operations under way"},
}

func (c *Config) limits() [limitCount]*int {
	return [...]*int{&c.MaxEntries, &c.MaxElements, &c.MaxSubscriptions, &c.MaxOperations}
}

// nearFor is how long a limit counts as near after it was, and how often a line says so at most.
const nearFor = time.Minute

// nearness remembers when half of each limit was reached last.
type nearness [limitCount]atomic.Int64 // in nanoseconds since 1970; 0: never

// of returns the names of the settings that are near.
func (n *nearness) of(now time.Time) (names []string) {
	for l := range n {
		if at := n[l].Load(); at != 0 && now.Sub(time.Unix(0, at)) < nearFor {
			names = append(names, limitNames[l][0])
		}
	}
	return names
}

// within returns an error if n is over a limit. From half of it on it says so.
func (a *replica) within(l limit, n int, key string) error {
	most := *a.l.cfg.limits()[l]
	if n <= most/2 {
		return nil
	}
	a.near(l, n, most, key)
	if n <= most {
		return nil
	}
	err := fmt.Errorf("%w: %s is %d, and this would be %d %s", ErrLimit, limitNames[l][0], most, n, limitNames[l][1])
	if key != "" {
		err = fmt.Errorf("key %q: %w", key, err)
	}
	return err
}

// near notes that half of a limit has been reached, and logs it once a minute.
func (a *replica) near(l limit, n, most int, key string) {
	now := a.volatile.shell.Now()
	a.l.r.near[l].Store(now.UnixNano())
	if !a.warned[l].IsZero() && now.Sub(a.warned[l]) < nearFor {
		return
	}
	a.warned[l] = now
	a.log.Warn("more than half of a limit is used", slog.String("setting", limitNames[l][0]), slog.Int("limit", most),
		slog.Int("used", n), slog.String("key", key))
}

// fits checks what an update has made of an entry, of which added so many are new.
func (a *replica) fits(key string, was, is causal.Store, added *int) error {
	was, is = content(was), content(is)
	if n := is.Len(); n > was.Len() {
		if err := a.within(maxElements, n, key); err != nil {
			return err
		}
	}
	if !was.Empty() || is.Empty() {
		return nil
	}
	*added++
	n := *added
	for _, d := range a.domains {
		n += d.core.Keys().Len()
	}
	return a.within(maxEntries, n, key)
}

// admit returns an error if too many operations are under way for one more of a key. Those that are answered at once do
// not count.
func (a *replica) admit(at Consistency, key string) error {
	if at == Local && !a.l.r.choice.durable(key) {
		return nil
	}
	return a.within(maxOperations, len(a.pending)+1, "")
}
