package coordination

import "time"

// Failing reports whether the store has not answered for so long that leases are near expiry, in
// the sense of Grant.OnNearExpiry, or have expired. It stays true until the store answers; while
// writes alone fail, as on a full disk, answers to reads do not count. One failed call, or several
// that are repeated in time, are not enough. A session that holds no lease, and perhaps has never
// held one, is failing when its calls have failed for half of Config.TTL. Failing does no I/O and
// does not allocate.
func (s *Session) Failing() bool {
	s.stats.Lock()
	defer s.stats.Unlock()
	return s.stats.failing(s.cfg.TTL)
}

func (st *stats) failing(ttl time.Duration) bool {
	return st.near || st.expired || st.status.NearExpiry > 0 || st.silent(ttl/2)
}

// stand changes what is known about the store's answers.
func (s *Session) stand(change func(*stats)) {
	s.learn(s.clock.Read().Mono, change)
}

// learn changes what is known about the store's answers at a time, and logs what is new in that.
func (s *Session) learn(now time.Duration, change func(*stats)) {
	s.stats.Lock()
	change(&s.stats)
	lines := s.stats.news(now, s.cfg.OperationTimeout, s.cfg.TTL)
	s.stats.Unlock()
	s.tell(lines)
}
