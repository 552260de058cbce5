package sharding

import (
	"log/slog"
	"sync"
	"time"

	"github.com/concord-go/concord/sharding/internal/core"
)

// breaker is the circuit breaker of a member for the store of its remembered entities.
type breaker struct {
	sync.Mutex
	core *core.Breaker
	err  error // of the last call that failed
}

func newBreaker() *breaker {
	return &breaker{core: core.NewBreaker(core.BreakerConfig{
		Trip: 10 * beat, Wait: time.Minute, MaxWait: 10 * time.Minute})}
}

// called learns the result of a call for a shard. It reports whether to log an error: not while the
// breaker is open, which is logged.
func (b *breaker) called(now time.Time, shard int, err error) (logs bool) {
	b.Lock()
	defer b.Unlock()
	if err != nil {
		b.err = err
	}
	b.core.Called(now, shard, err == nil)
	return err != nil && !b.core.Tripped()
}

// tripped reports whether the breaker has opened and no call has succeeded since, and the last
// error.
func (b *breaker) tripped() (tripped bool, err error) {
	b.Lock()
	defer b.Unlock()
	return b.core.Tripped(), b.err
}

// memory returns what the region reports of the store. If the calls for some shards have failed
// for a while, it first lets the store be called for another one.
func (l *binding) memory() core.Memory {
	if !l.cfg.Remember {
		return core.MemoryWorks
	}
	b, now := l.breaker, l.clock.Now()
	b.Lock() // before the mutex of a shard
	defer b.Unlock()
	if b.core.Suspects(now) {
		l.askAnother(now)
	}
	return b.core.Memory(now)
}

// askAnother stores an entity again in a shard whose calls have not failed, or opens the breaker if
// there is none: then no entity here depends on the store. The caller must hold the breaker, so
// that the result comes after.
func (l *binding) askAnother(now time.Time) {
	for n, s := range l.shards {
		if !l.breaker.core.Failed(n) && s.storeAgain() {
			l.breaker.core.Ask(now, n)
			return
		}
	}
	l.breaker.core.Trip()
}

// storeAgain stores an entity that is remembered, and reports whether there is one.
func (s *hostedShard) storeAgain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slot == nil || s.closes || s.memory == nil {
		return false
	}
	id, ok := s.slot.Remembered()
	if ok {
		s.memory.add(change{id: id, again: true})
	}
	return ok
}

// heed passes what has changed about the stores to the core.
func (c *control) heed() (now core.Store, changed bool) {
	now.Memory = c.binding.memory()
	if s := c.binding.session; s != nil {
		now.Failing = s.Failing()
	}
	changed = now != c.store
	c.store = now
	tripped, err := c.binding.breaker.tripped()
	switch {
	case tripped == c.tripped:
	case tripped:
		c.log.Warn("store of remembered entities fails at this member: its shards move to members"+
			" where calls succeed, if there are any; check the store and the network to it",
			slog.String("address", c.binding.system.Address()), slog.Any("error", err))
	default:
		c.log.Info("store of remembered entities works again at this member")
	}
	c.tripped = tripped
	return now, changed
}
