//go:build linux

package healtest_test

import (
	"fmt"
	"slices"
	"time"
)

const (
	// poll is how often conditions are checked.
	poll = 50 * time.Millisecond
	// fresh is the maximum age of a status, and of the latest answer of the singleton.
	fresh = 1500 * time.Millisecond
	// settled is how long all conditions must hold before the cluster counts as healed.
	settled = 2 * time.Second
)

// condition holds when missing returns "".
type condition struct {
	name    string
	missing func() string
}

// Names of conditions.
const (
	oneView   = "one view"
	equalData = "equal data"
	answering = "singleton answering"
)

// whole returns the conditions of a healed cluster: all members list all members, each has seen at
// least the adds of each process in floor, and each has had an answer to a request sent after the
// given time.
func whole(c *members, after time.Duration, floor map[string]uint64) []condition {
	return []condition{
		{oneView, func() string { return c.each(after, c.listsAll) }},
		{equalData, func() string {
			return c.each(after, func(s *status) string {
				for name, n := range floor {
					if s.By[name] < n {
						return fmt.Sprintf("has %d of the %d adds of %s", s.By[name], n, name)
					}
				}
				return ""
			})
		}},
		{answering, func() string {
			return c.each(after, func(s *status) string {
				switch {
				case s.Asked < after || s.Asked == 0:
					return "has no answer: " + s.AskErr
				case s.At-s.Asked > fresh:
					return fmt.Sprintf("has no answer since %v: %s", s.At-s.Asked, s.AskErr)
				}
				return ""
			})
		}},
	}
}

// each returns what the first incomplete member is missing.
func (c *members) each(after time.Duration, missing func(s *status) string) string {
	for _, p := range c.live {
		if p == nil {
			continue
		}
		s := p.now().last
		switch {
		case p.Ended():
			return p.Name + " has exited"
		case s == nil || s.At < after:
			return p.Name + " has said nothing"
		case bootTime()-s.At > fresh:
			return fmt.Sprintf("%s has said nothing since %v", p.Name, bootTime()-s.At)
		}
		if m := missing(s); m != "" {
			return p.Name + " " + m
		}
	}
	return ""
}

// routines counts the goroutines of each member.
func (c *members) routines() (out []int) {
	for _, p := range c.live {
		if p != nil {
			if s := p.now().last; s != nil {
				out = append(out, s.Routines)
			}
		}
	}
	return out
}

// listsAll compares a member's view with the running processes and with the view of the first of
// them.
func (c *members) listsAll(s *status) string {
	var want []string
	var ids []string
	for i, p := range c.live {
		if p == nil {
			continue
		}
		want = append(want, fmt.Sprintf("%s:%d", c.hosts[i], memberPort))
		if h := p.now(); ids == nil && h.last != nil {
			ids = h.last.IDs
		}
	}
	got := slices.Sorted(slices.Values(s.Addrs))
	slices.Sort(want)
	switch {
	case !slices.Equal(got, want):
		return fmt.Sprintf("lists %v", s.Addrs)
	case !slices.Equal(s.IDs, ids):
		return fmt.Sprintf("lists ids %v, another %v", s.IDs, ids)
	case s.NotReady != "":
		return "is not ready: " + s.NotReady
	}
	return ""
}

// heal waits until all conditions have held for settled, and returns how long after since each was
// last seen not to hold. It returns what is missing if that takes longer than within.
func (c *members) heal(conditions []condition, since time.Time,
	within time.Duration) (took map[string]time.Duration, missing string) {
	took = map[string]time.Duration{}
	for held := since; ; time.Sleep(poll) {
		missing = ""
		now := time.Now()
		for _, x := range conditions {
			if m := x.missing(); m != "" {
				took[x.name] = now.Sub(since) + poll
				held = now
				missing += x.name + ": " + m + "; "
			}
		}
		switch {
		case missing == "" && now.Sub(held) >= settled && now.Sub(since) >= settled:
			return took, ""
		case missing != "" && (now.Sub(since) > within || c.exited()):
			return took, missing
		case now.Sub(since) > within+patience():
			return took, "never settles"
		}
	}
}
