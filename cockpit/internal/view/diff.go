package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// Diff returns the differences between two overviews, as events without numbers. If old is nil, it
// returns nil.
func Diff(old, now *api.Overview) (events []api.Event) {
	if old == nil {
		return nil
	}
	say := func(level, format string, args ...any) {
		events = append(events, api.Event{At: now.At, Level: level, From: "watch",
			Text: Cut(fmt.Sprintf(format, args...), maxText)})
	}
	was, is := addresses(old.Cluster), addresses(now.Cluster)
	for _, a := range is {
		if !slices.Contains(was, a) {
			say("info", "%s joined the cluster", a)
		}
	}
	for _, a := range was {
		if !slices.Contains(is, a) && slices.Contains(now.Cluster.Lost, a) {
			say("error", "%s is missing", a)
		} else if !slices.Contains(is, a) {
			say("info", "%s left the cluster", a)
		}
	}
	if f := now.Cluster.Fault; f != nil && !f.Ongoing && old.Cluster.Fault != nil &&
		old.Cluster.Fault.Ongoing {
		say("info", "the cluster is whole again after %v: %s",
			time.Duration(f.TookMS)*time.Millisecond, f.What)
	}
	pairs(old.Replicators, now.Replicators, func(r api.Replicator) string {
		return r.Name
	}, func(a, b api.Replicator) {
		if a.Ready != b.Ready {
			say(level(b.Ready), "replicator %s is %s", b.Name, ready(b.Ready))
		}
		if a.Diverged != b.Diverged || a.Corrupted != b.Corrupted {
			say("error", "replicator %s found a divergence", b.Name)
		}
	})
	pairs(old.Sessions, now.Sessions, func(s api.Session) string {
		return s.Name
	}, func(a, b api.Session) {
		for why, n := range b.Lost {
			if more := n - a.Lost[why]; more > 0 && n > a.Lost[why] {
				say("error", "session %s lost %d leases: %s", b.Name, more, why)
			}
		}
		if (a.NearExpiry > 0) != (b.NearExpiry > 0) {
			say(level(b.NearExpiry == 0), "session %s: %d leases near expiry", b.Name, b.NearExpiry)
		}
	})
	pairs(old.Singletons, now.Singletons, func(s api.Singleton) string {
		return s.Name
	}, func(a, b api.Singleton) {
		switch {
		case b.State == "unknown" && a.State != "unknown":
			say("warn", "singleton %s has no known host", b.Name)
		case b.State != "unknown" && (a.State == "unknown" || a.Host != b.Host ||
			a.Token != b.Token):
			say("info", "singleton %s runs on %s with token %d", b.Name, b.Host, b.Token)
		}
	})
	pairs(old.Shards, now.Shards, func(s api.Shards) string {
		return s.Type
	}, func(a, b api.Shards) {
		if n := moved(a, b); n > 0 {
			say("info", "%d shards of %s moved to another home", n, b.Type)
		}
	})
	return events
}

// Fault returns the most recent fault of the cluster, given the fault before now. It starts,
// updates or ends a fault according to now.
func Fault(last *api.Fault, now *api.Overview) *api.Fault {
	var what []string
	if n := now.Cluster.Lost; len(n) > 0 {
		what = append(what, "missing "+strings.Join(n, ", "))
	}
	if n := now.Cluster.Split; len(n) > 0 {
		what = append(what, "split from "+strings.Join(n, ", "))
	}
	if r := now.Cluster.Removed; r != "" {
		what = append(what, r)
	}
	broken := len(what) > 0
	text := Cut(strings.Join(what, "; "), maxText)
	switch {
	case broken && (last == nil || !last.Ongoing):
		return &api.Fault{What: text, Since: now.At, Ongoing: true}
	case broken && last.What != text:
		return &api.Fault{What: text, Since: last.Since, Ongoing: true}
	case !broken && last != nil && last.Ongoing:
		return &api.Fault{What: last.What, Since: last.Since, Healed: new(now.At),
			TookMS: now.At.Sub(last.Since).Milliseconds()}
	}
	return last
}

func level(good bool) string {
	if good {
		return "info"
	}
	return "warn"
}

func ready(yes bool) string {
	if yes {
		return "ready"
	}
	return "not ready"
}

func addresses(c api.Cluster) (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Address)
	}
	return all
}

// moved returns the number of shards whose home has changed.
func moved(a, b api.Shards) (n int) {
	home := func(s api.Shards, i int) string {
		if i >= len(s.Map) || s.Map[i] < 0 || s.Map[i] >= len(s.Homes) {
			return ""
		}
		return s.Homes[s.Map[i]].ID
	}
	for i := range min(len(a.Map), len(b.Map)) {
		if home(a, i) != home(b, i) {
			n++
		}
	}
	return n
}

// pairs calls f for each pair of elements of old and now with the same name.
func pairs[T any](old, now []T, name func(T) string, f func(a, b T)) {
	for _, b := range now {
		for _, a := range old {
			if name(a) == name(b) {
				f(a, b)
			}
		}
	}
}
