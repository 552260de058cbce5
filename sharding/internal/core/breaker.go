package core

import "time"

// Memory is what a region knows of the store of its remembered entities.
type Memory uint8

// What a region knows.
const (
	MemoryWorks    Memory = iota // a call has succeeded recently, or there is no such store
	MemoryUnproven               // none has
	MemoryFails
)

// Breaker is the circuit breaker of a region for the store of its remembered entities. It learns
// the results of all calls, and decides whether the region reports that the store fails [S41].
//
//	            calls have failed for Trip, none has succeeded, and the region
//	            has no other shard to ask, or a call for another one failed
//	closed ──────────────────────────────────────────────────────────────▶ open
//	   ▲                                                                   │   ▲
//	   │ a call succeeds, in any state        no call has failed for the wait  │ a call fails:
//	   │                                                                   ▼   │ the wait doubles
//	   └──────────────────────────────────────────────────────────────── half-open
//
// A shard that alone cannot be read, because it is too large or its rows are damaged, therefore
// does not open the breaker.
type Breaker struct {
	cfg         BreakerConfig
	first, last time.Time // failed calls since the last success; zero: none
	worked      time.Time // last success
	failed      map[int]bool
	asked       int // another shard, whose call was requested at askedAt
	askedAt     time.Time
	opened      int // times since the last success
}

// BreakerConfig configures a Breaker.
type BreakerConfig struct {
	// Trip is how long calls fail, without a success, before the breaker opens.
	Trip time.Duration
	// Wait is how long no call must have failed until shards are accepted again. It doubles each
	// time, up to MaxWait.
	Wait, MaxWait time.Duration
}

// NewBreaker returns a Breaker that is closed.
func NewBreaker(cfg BreakerConfig) *Breaker { return &Breaker{cfg: cfg} }

// Called learns the result of a call for a shard.
func (b *Breaker) Called(now time.Time, shard int, ok bool) {
	if ok {
		*b = Breaker{cfg: b.cfg, worked: now}
		return
	}
	switch {
	case b.opened > 0 && !b.Open(now):
		b.opened++
	case b.first.IsZero(), b.opened == 0 && now.Sub(b.last) > 4*b.cfg.Trip: // calls are repeated
		b.first, b.failed, b.askedAt = now, map[int]bool{}, time.Time{}
	case b.opened == 0 && !b.askedAt.IsZero() && shard == b.asked:
		b.opened = 1
	}
	b.last = now
	b.failed[shard] = true
}

// Suspects reports whether calls have failed for Trip, so that another shard is to be asked: the
// caller calls Ask or Trip. An answer to Ask that does not come is requested again.
func (b *Breaker) Suspects(now time.Time) bool {
	return b.opened == 0 && !b.first.IsZero() && b.last.Sub(b.first) >= b.cfg.Trip &&
		!now.Before(b.askedAt.Add(4*b.cfg.Trip))
}

// Failed reports whether a call for the shard has failed since the last success.
func (b *Breaker) Failed(shard int) bool { return b.failed[shard] }

// Ask notes that the store is called for a shard, for which no call has failed.
func (b *Breaker) Ask(now time.Time, shard int) { b.asked, b.askedAt = shard, now }

// Trip opens the breaker.
func (b *Breaker) Trip() { b.opened = max(1, b.opened) }

// Open reports whether the region reports that the store fails.
func (b *Breaker) Open(now time.Time) bool {
	return b.opened > 0 && now.Before(b.last.Add(b.wait()))
}

// Tripped reports whether the breaker has opened and no call has succeeded since.
func (b *Breaker) Tripped() bool { return b.opened > 0 }

// Memory returns what the region reports.
func (b *Breaker) Memory(now time.Time) Memory {
	switch {
	case b.Open(now):
		return MemoryFails
	case now.Sub(b.worked) >= b.cfg.Trip:
		return MemoryUnproven
	}
	return MemoryWorks
}

func (b *Breaker) wait() time.Duration {
	return min(b.cfg.MaxWait, b.cfg.Wait<<min(b.opened-1, 16))
}
