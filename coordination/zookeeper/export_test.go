package zookeeper

import "time"

// Tidy is what happens when a session record is removed at a time.
func (s *Store) Tidy(now time.Time) { s.tidy(now) }
