package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// lasts is how long a member may wait at its start for the decision on which side hosts, before
// that is logged as a fault.
const lasts = 10 * time.Second

// stepLog logs whether the members of this side host, in one line for each fault and one for its
// end. A member that starts, or leaves in order, is no fault; nor is a side that steps down since
// members were dropped, of which watch logs what follows.
type stepLog struct {
	log     *slog.Logger
	address string
	hosted  bool      // in this incarnation
	shut    time.Time // since when it does not host; zero: it hosts
	told    bool      // that has been logged, above Debug
	why     string    // as logged last
	here    int
	all     int // 0: not known
}

// opened logs that the member hosts.
func (l *stepLog) opened(now time.Time, here, all int) {
	about := []any{slog.String("address", l.address), slog.Int("members", here),
		slog.Int("of", all)}
	switch {
	case l.told:
		about = append(about, slog.Duration("after", now.Sub(l.shut).Round(time.Millisecond)))
		l.log.Info("singletons and shards may run here again", about...)
	default:
		l.log.Info("singletons and shards may run here", about...)
	}
	l.hosted, l.shut, l.told, l.why = true, time.Time{}, false, ""
}

// closed logs that the member does not host. dropped means that members were dropped, and ends that
// this one leaves the cluster or begins another incarnation: both are logged elsewhere.
func (l *stepLog) closed(now time.Time, why string, here, all int, dropped, ends bool) {
	if l.shut.IsZero() {
		l.shut = now
	}
	changed := why != l.why
	l.why, l.here, l.all = why, here, all
	switch {
	case ends:
		l.log.Debug("no singletons and shards here", l.about()...)
	case l.hosted && !l.told:
		level := slog.LevelWarn
		if dropped && 2*here <= all {
			level = slog.LevelInfo
		}
		l.say(level,
			"stepped down: no singletons and shards here until this member sees a majority")
	case changed:
		l.log.Info("no singletons and shards here", l.about()...)
	}
}

// late logs that a member has not hosted since its start.
func (l *stepLog) late() {
	if !l.shut.IsZero() && !l.hosted && !l.told {
		l.say(slog.LevelWarn, "no singletons and shards here yet")
	}
}

func (l *stepLog) say(level slog.Level, what string) {
	l.told = true
	about := append(l.about(), slog.String("then", l.then()))
	l.log.Log(context.Background(), level, what, about...) //nolint:sloglint // one of two constants
}

func (l *stepLog) about() []any {
	members := fmt.Sprint(l.here)
	if l.all > 0 {
		members = fmt.Sprintf("%d of %d", l.here, l.all)
	}
	return []any{slog.String("address", l.address), slog.String("members", members),
		slog.String("why", l.why)}
}

// then says what follows.
func (l *stepLog) then() string {
	switch {
	case !l.hosted:
		return "this member hosts when it sees a majority of the members: check that the others " +
			"run and that the network between them works"
	case 2*l.here > l.all:
		return "the other side hosts: this member rejoins it when the two sides meet"
	}
	return "a side with a majority hosts what ran here as soon as it has stopped here; if there " +
		"is none, the lease store decides which side hosts"
}
