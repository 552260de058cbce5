package bugs

import (
	"sync"
	"time"
)

// Sparse lets one of many similar log lines pass, and counts the others. The zero value lets the
// first one pass. It is safe for concurrent use.
type Sparse struct {
	mu       sync.Mutex
	logged   time.Time
	unlogged int // lines since then
}

// Due reports whether a line may be logged at now, which is so if none has been logged for quiet,
// and how many have not been logged since the last one.
func (s *Sparse) Due(now time.Time, quiet time.Duration) (unlogged int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.logged.IsZero() && now.Sub(s.logged) < quiet {
		s.unlogged++
		return 0, false
	}
	unlogged, s.logged, s.unlogged = s.unlogged, now, 0
	return unlogged, true
}
