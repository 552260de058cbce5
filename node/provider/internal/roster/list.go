package roster

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// list decides what is reported, from what a directory lists. It has no clock.
type list struct {
	grace time.Duration

	entries  []Member  // of the last report of the directory
	reported []Member  // what list returned last
	lost     bool      // no report since the session was lost
	until    time.Time // missing members stay till then
}

// lose notes that the session with the directory is lost.
func (l *list) lose() { l.lost = true }

// hear takes in a report of the directory, and returns what is to be reported now.
func (l *list) hear(now time.Time, entries []Member) []Member {
	if l.lost {
		l.lost, l.until = false, now.Add(l.grace)
	}
	l.entries = slices.Clone(entries)
	return l.at(now)
}

// at returns what is to be reported now.
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
	l.reported = slices.SortedFunc(maps.Values(byAddress), func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return l.reported
}

// settles returns how long missing members still stay, 0 if none does.
func (l *list) settles(now time.Time) time.Duration { return max(0, l.until.Sub(now)) }

func later(a, b Member) bool {
	if a.Order != b.Order {
		return a.Order > b.Order
	}
	return a.ID > b.ID
}
