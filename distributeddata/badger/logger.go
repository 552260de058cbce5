package badger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/concord-go/concord/distributeddata/internal/disk"
)

// logger forwards what Badger logs. Badger only logs some failed syncs; they make the store fail.
type logger struct {
	s      *disk.Store
	engine *engine
}

func (l *logger) Errorf(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	unsynced := strings.Contains(strings.ToLower(text), "sync")
	if unsynced {
		_ = l.s.Fail(errors.New(text)) // logs it
	}
	repeated := strings.HasPrefix(text, "error flushing memtable") && !l.engine.flushFailed(text)
	if unsynced || repeated {
		return
	}
	l.log(slog.LevelWarn, text)
}

func (l *logger) Warningf(format string, args ...any) { l.say(slog.LevelWarn, format, args) }

func (l *logger) Infof(format string, args ...any) { l.say(slog.LevelDebug, format, args) }

func (l *logger) Debugf(format string, args ...any) { l.say(slog.LevelDebug, format, args) }

func (l *logger) say(level slog.Level, format string, args []any) {
	l.log(level, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (l *logger) log(level slog.Level, text string) {
	l.s.Log().Log(context.Background(), level, "badger", slog.String("directory", l.s.Dir()),
		slog.String("says", text))
}
