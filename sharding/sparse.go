package sharding

import (
	"sync"
	"time"
)

// quiet is how long a line of the log is not repeated. While the lease store does not answer, each
// shard tries again and again to acquire its lease; and many entities may fail for one reason.
const quiet = 10 * time.Second

// sparse lets one of many similar log lines pass, and counts the others. The zero value lets the
// first one pass.
type sparse struct {
	mu       sync.Mutex
	logged   time.Time
	unlogged int // lines since then
}

// due reports whether a line may be logged at now, and how many have not been logged since the last
// one.
func (s *sparse) due(now time.Time) (unlogged int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.logged.IsZero() && now.Sub(s.logged) < quiet {
		s.unlogged++
		return 0, false
	}
	unlogged, s.logged, s.unlogged = s.unlogged, now, 0
	return unlogged, true
}
