package coordination

import (
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Status is a snapshot of the state and the counters of a session. Counters start at Open.
type Status struct {
	Owner string
	// Held is the number of leases held now. NearExpiry is how many of them are near expiry; see
	// Grant.OnNearExpiry.
	Held, NearExpiry int
	// Waiting is the number of callers that wait in Acquire and TryAcquire now.
	Waiting int
	// Granted, Taken and Unknown count the answers to those callers.
	Granted, Taken, Unknown uint64
	// Released counts the tenures that were released, and Lost those that were lost, by reason.
	Released uint64
	Lost     map[Loss]uint64
	// Calls of the store, by "load" and "swap". Watches are not counted. Swaps that share a call,
	// with a leasestore.Batcher, count as one each.
	Calls map[string]Calls
	// Panics counts the panics of this library's own code; see Health of package node.
	Panics uint64
	// Stalls counts how often the session woke a quarter of a second late, or later: the process
	// was paused, by a garbage collection, SIGSTOP or a suspended machine, or it got no processor.
	// LongestStall is the largest delay. A session without leases in use does not notice pauses.
	Stalls       uint64
	LongestStall time.Duration
	// Renewed is the time since the last successful write: a renewal, or a write that began or
	// ended a tenure. It is 0 before the first.
	Renewed time.Duration
}

// Keys of Status.Calls.
const (
	loads = "load"
	swaps = "swap"
)

// Calls counts the finished calls of one operation. A conflict is an answer, not a failure.
type Calls struct{ Succeeded, Conflicted, Failed uint64 }

// stats is the data behind Status.
type stats struct {
	sync.Mutex
	status  Status
	renewed time.Duration // monotonic
	wrote   bool
	near    bool // the session record is near expiry
	expired bool // a lease has expired since the store's last answer; see storeLog.answered
	storeLog
}

// count changes the statistics.
func (s *Session) count(change func(*Status)) {
	s.stand(func(st *stats) { change(&st.status) })
}

// stall is the least delay of the session that counts as a stall, and longStall the least one that
// is logged, unless a quarter of TTL is more.
const (
	stall     = 250 * time.Millisecond
	longStall = time.Second
)

// overrun records by how much the session woke late.
func (s *Session) overrun(late time.Duration) {
	if late < stall {
		return
	}
	s.count(func(st *Status) {
		st.Stalls, st.LongestStall = st.Stalls+1, max(late, st.LongestStall)
	})
	if late >= max(longStall, s.cfg.TTL/4) {
		s.cfg.Logger.Warn("this process did not run for a while: it was paused, or got no processor",
			slog.String("owner", s.cfg.Owner), slog.Duration("late", late.Round(time.Millisecond)),
			slog.Duration("ttl", s.cfg.TTL))
	}
}

// called records a finished call of the store.
func (s *Session) called(op string, begun time.Duration, err error) {
	now := s.clock.Read().Mono
	s.meters.call(op, now-begun, err)
	s.learn(now, func(st *stats) {
		c := st.status.Calls[op]
		switch {
		case err == nil:
			c.Succeeded++
		case isConflict(err):
			c.Conflicted++
		default:
			c.Failed++
		}
		st.status.Calls[op] = c
		if op == swaps && err == nil {
			st.renewed, st.wrote = now, true
		}
		switch {
		case err != nil && !isConflict(err):
			st.failedCall(now, op, err)
		case op == swaps || !st.refuses(now, s.cfg.TTL):
			st.expired = false
			st.answered(now, now-begun, s.cfg.OperationTimeout/2)
		}
	})
}

// Status returns a snapshot. It does no I/O and may be called at any time, also after Close.
func (s *Session) Status() Status {
	s.stats.Lock()
	defer s.stats.Unlock()
	st := s.stats.status
	st.Lost, st.Calls = maps.Clone(st.Lost), maps.Clone(st.Calls)
	if s.stats.wrote {
		st.Renewed = s.clock.Read().Mono - s.stats.renewed
	}
	return st
}
