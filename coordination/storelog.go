package coordination

import (
	"context"
	"log/slog"
	"time"
)

// storeLog is what a session has logged about its store: one line for each fault, and one for its
// end.
type storeLog struct {
	failure error         // of the last call that failed since the store's last answer
	heard   time.Duration // when the store last answered, monotonic
	away    bool          // it has been logged that the store does not answer
	slow    int           // slow answers, until fewAnswers in a row were not
	fast    int           // answers in a row that were not slow
	slowest time.Duration // of the slow answers
	lags    bool          // it has been logged that the store is slow
}

const (
	// fewSlow is how many answers must be slow before that is logged.
	fewSlow = 3
	// fewAnswers is how many answers in a row that are not slow end that.
	fewAnswers = 10
)

// answered records an answer, which is slow if it took longer than bound.
func (l *storeLog) answered(now, took, bound time.Duration) {
	if !l.away {
		l.heard, l.failure = now, nil
	}
	if took > bound {
		l.slow, l.fast, l.slowest = l.slow+1, 0, max(l.slowest, took)
		return
	}
	if l.fast++; l.fast >= fewAnswers {
		l.slow, l.slowest = 0, 0
	}
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
// A process that was paused does not accuse the store: no call of it has failed. limit is that of a
// call.
func (st *stats) news(now, limit time.Duration) (lines []storeLine) {
	l := &st.storeLog
	say := func(level slog.Level, text string, attrs ...slog.Attr) {
		lines = append(lines, storeLine{level, text, attrs})
	}
	silent := (now - l.heard).Round(time.Millisecond)
	switch failing := st.failing(); {
	case failing && !l.away && l.failure != nil:
		l.away = true
		say(slog.LevelWarn, "the lease store does not answer",
			slog.Int("leases", st.status.Held), slog.Duration("for", silent),
			slog.Any("error", l.failure), slog.String("then",
				"what runs here under leases stops before they end, and starts again where the "+
					"store answers"))
	case !failing && l.away:
		say(slog.LevelInfo, "the lease store answers again", slog.Duration("after", silent))
		l.away, l.failure, l.heard = false, nil, now
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
