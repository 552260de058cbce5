package node

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// upstream is the prefix of the names of Proto.Actor's functions.
const upstream = "github.com/asynkron/protoactor-go/"

// usual lists prefixes of messages that Proto.Actor logs as errors although they are part of every
// restart of a peer and of every stop.
var usual = []string{
	"EndpointWriter ", "EndpointReader ", "EndpointManager ", "EndpointSupervisor ",
	"Automanaged server stopping",
	"Bad connection to the node health status", "Failure reaching nodes",
}

// quietly returns a logger that lowers the level of what Proto.Actor logs and passes everything
// else on unchanged. Where Proto.Actor logs a whole message, it logs the type. Progress messages
// are logged as Debug, since Proto.Actor logs dozens of lines for each membership change, and
// messages listed in usual as Info, unless unsendable.
func quietly(l *slog.Logger) *slog.Logger { return slog.New(quiet{l.Handler()}) }

type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.PC != 0 && isUpstream(r.PC) {
		r.Level = lowered(r)
		if !q.Enabled(ctx, r.Level) {
			return nil
		}
		r = withoutMessages(r)
	}
	return q.Handler.Handle(ctx, r)
}

// messageKey is the key under which Proto.Actor logs messages.
const messageKey = "message"

// withoutMessages returns r with the types of messages in place of the messages.
func withoutMessages(r slog.Record) slog.Record {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == messageKey {
			a.Value = slog.StringValue(fmt.Sprintf("%T", a.Value.Any()))
		}
		out.AddAttrs(a)
		return true
	})
	return out
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

func isUpstream(pc uintptr) bool {
	frame, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	return strings.HasPrefix(frame.Function, upstream)
}

func lowered(r slog.Record) slog.Level {
	if unsendable(r) {
		return r.Level
	}
	for _, u := range usual {
		if r.Level > slog.LevelInfo && strings.HasPrefix(r.Message, u) {
			return slog.LevelInfo
		}
	}
	if r.Level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return r.Level
}

// unsendable reports whether r says that messages were dropped although the peer is well: one that
// is not a protobuf message, such as a reply with a Go string, or a batch above the peer's
// MaxMessage. Nothing else reports these mistakes.
func unsendable(r slog.Record) (yes bool) {
	if r.Message == "EndpointWriter failed to serialize message" {
		return true
	}
	r.Attrs(func(a slog.Attr) bool {
		err, ok := a.Value.Any().(error)
		yes = ok && status.Code(err) == codes.ResourceExhausted &&
			strings.Contains(err.Error(), "larger than max")
		return !yes
	})
	return yes
}
