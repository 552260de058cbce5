package zookeeper

import "time"

// Validate checks a configuration.
func Validate(c Config) error { return c.validate() }

// Tidy runs the cleanup that follows the removal of a session record at the given time.
func Tidy(s Store, now time.Time) { s.(*store).tidy(now) }
