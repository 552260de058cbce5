package roster

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// list decides what to report from the entries of a directory. It has no clock.
type list struct {
	grace time.Duration

	entries  []Member  // last report of the directory
	reported []Member  // last result of at
	lost     bool      // no report since the session was lost
	until    time.Time // missing members stay listed until then
}

// lose records that the session with the directory is lost.
func (l *list) lose() { l.lost = true }

// hear records a report of the directory, and returns the members to report now.
func (l *list) hear(now time.Time, entries []Member) []Member {
	if l.lost {
		l.lost, l.until = false, now.Add(l.grace)
	}
	l.entries = slices.Clone(entries)
	return l.at(now)
}

// at returns the members to report now.
func (l *list) at(now time.Time) []Member {
	byAddress := map[string]Member{}
	for _, m := range l.entries {
		if had, ok := byAddress[m.address()]; !ok || later(m, had) {
			byAddress[m.address()] = m
		}
	}
	if l.lost || now.Before(l.until) {
		for _, m := range l.reported {
			if _, ok := byAddress[m.address()]; !ok {
				byAddress[m.address()] = m
			}
		}
	}
	l.reported = slices.SortedFunc(maps.Values(byAddress), func(a, b Member) int {
		return strings.Compare(a.ID, b.ID)
	})
	return l.reported
}

// settles returns how much longer missing members stay listed, 0 if none do.
func (l *list) settles(now time.Time) time.Duration { return max(0, l.until.Sub(now)) }

func later(a, b Member) bool {
	if a.Order != b.Order {
		return a.Order > b.Order
	}
	return a.ID > b.ID
}
