package coordination

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

// storeLog is what a session has logged about its store: one line for each fault, and one for its
// end.
type storeLog struct {
	failure error         // of the last call that failed since the store's last answer; nil: none
	failed  time.Duration // when the first of these calls failed, monotonic
	last    time.Duration // when the last of them did
	refused time.Duration // when the last write of them did; 0: none
	mute    bool          // a read of them did
	heard   time.Duration // when the store last answered; if it never has, when a call failed first
	known   bool          // the store has answered
	back    time.Duration // when it first answered after calls had failed
	away    bool          // it has been logged that the store does not answer
	slow    int           // slow answers, until fewAnswers in a row were not
	slowAt  time.Duration // when the last of them came
	fast    int           // answers in a row that were not slow
	slowest time.Duration // of the slow answers
	lags    bool          // it has been logged that the store is slow
}

const (
	// fewSlow is how many answers must be slow before that is logged.
	fewSlow = 3
	// fewAnswers is how many answers in a row that are not slow end that, and calm how long after
	// the last slow one. A store that is slow now and then is one line.
	fewAnswers = 10
	calm       = time.Minute
)

// answered records an answer, which is slow if it took longer than bound. A call that began while
// others failed has waited for the end of that. While writes alone fail, the answer to a read is
// none: it keeps no lease.
func (l *storeLog) answered(now, took, bound time.Duration) {
	if l.failure != nil {
		l.failure, l.refused, l.mute, l.back = nil, 0, false, now
	}
	if l.known = true; !l.away {
		l.heard = now
	}
	switch {
	case took > bound && now-took < l.back:
		return
	case took > bound:
		l.slow, l.fast, l.slowest, l.slowAt = l.slow+1, 0, max(l.slowest, took), now
		return
	}
	if l.fast++; l.fast >= fewAnswers && (!l.lags || now-l.slowAt >= calm) {
		l.slow, l.slowest = 0, 0
	}
}

// refuses reports whether writes alone have failed since the store's last answer, the last of them
// less than a TTL ago: writes that are wanted are repeated sooner.
func (l *storeLog) refuses(now, ttl time.Duration) bool {
	return !l.mute && l.refused > 0 && now-l.refused < ttl
}

// failedCall records a call without an answer.
func (l *storeLog) failedCall(now time.Duration, op string, err error) {
	if l.failure == nil {
		l.failed = now
	}
	if l.failure == nil && !l.known {
		l.heard = now
	}
	l.failure, l.last = err, now
	if op == swaps {
		l.refused = max(now, 1)
	} else {
		l.mute = true
	}
}

// silent reports whether calls have failed for at least the given time, without an answer.
func (l *storeLog) silent(least time.Duration) bool {
	return l.failure != nil && l.last-l.failed >= least
}

// rejected reports whether the last failed call was a write that the store refused, as on a full
// disk, and not one that began too late.
func (l *storeLog) rejected() bool {
	return errors.Is(l.failure, leasestore.ErrRefused) &&
		!errors.Is(l.failure, context.DeadlineExceeded) && !errors.Is(l.failure, context.Canceled)
}

// storeLine is a line of the log about the store.
type storeLine struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

// tell logs lines about the store. Handlers of the log are code of the application: s.stats must
// not be locked.
func (s *Session) tell(lines []storeLine) {
	for _, l := range lines {
		s.cfg.Logger.LogAttrs(context.Background(), l.level, l.text, //nolint:sloglint // of news
			append([]slog.Attr{slog.String("owner", s.cfg.Owner)}, l.attrs...)...)
	}
}

// news returns the lines that say that the store does not answer, or is slow, and the end of that.
// A process that was paused does not accuse the store: no call of it has failed. Without leases the
// store counts as silent after half a TTL. limit is that of a call.
func (st *stats) news(now, limit, ttl time.Duration) (lines []storeLine) {
	l := &st.storeLog
	say := func(level slog.Level, text string, attrs ...slog.Attr) {
		lines = append(lines, storeLine{level, text, attrs})
	}
	silence := (now - l.heard).Round(time.Millisecond)
	switch silent := st.failing(ttl); {
	case silent && !l.away && l.failure != nil:
		l.away = true
		then := "what runs here under leases stops before they end, and starts again where the " +
			"store answers"
		if st.status.Held == 0 {
			then = "no lease is acquired here until it answers"
		}
		text, check := "the lease store does not answer", "that it runs, and the network to it"
		if l.rejected() {
			text, check = "the lease store refuses writes", "its free space, and the rights to it"
		}
		say(slog.LevelWarn, text, slog.Int("leases", st.status.Held),
			slog.Duration("for", silence), slog.Any("error", l.failure),
			slog.String("then", then), slog.String("check", check))
	case !silent && l.away:
		say(slog.LevelInfo, "the lease store answers again", slog.Duration("after", silence))
		l.away, l.heard = false, now
	}
	switch {
	case l.slow >= fewSlow && !l.lags:
		l.lags = true
		say(slog.LevelWarn, "the lease store is slow", slog.Duration("took", l.slowest),
			slog.Duration("limit", limit), slog.String("then",
				"calls that take longer than the limit fail, and leases that cannot be renewed end"))
	case l.slow == 0 && l.lags:
		l.lags = false
		say(slog.LevelInfo, "the lease store is no longer slow")
	}
	return lines
}
