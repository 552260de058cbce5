package zookeeper

import "time"

// Tidy runs the cleanup that follows the removal of a session record at the given time.
func (s *Store) Tidy(now time.Time) { s.tidy(now) }
