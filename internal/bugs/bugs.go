package bugs

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"

	"github.com/concord-go/concord/internal/lifecycle"
)

// Recent is how long a panic makes its member unhealthy.
const Recent = time.Minute

// quiet is the least time between two log lines of one Log.
const quiet = time.Second

// Log records panics. The zero value is ready to use. It is safe for concurrent use.
type Log struct {
	mu struct {
		sync.Mutex
		count uint64
		last  time.Time // of the last panic
		of    string    // its component
	}
	lines Sparse
}

// Report records panic p of a component while it did something, and logs it with its stack, at most
// once a second. Call it in the deferred function that has recovered p.
func (l *Log) Report(to *slog.Logger, of, while string, p any) {
	now := time.Now()
	l.note(of, now)
	unlogged, due := l.lines.Due(now, quiet)
	if !due {
		return
	}
	defer func() { _ = recover() }() // the log handler is the application's
	to.Error("a bug of this library: a component panicked", slog.String("component", of),
		slog.String("while", while), slog.Any("panic", p), slog.Int("unlogged", unlogged),
		slog.String("stack", string(debug.Stack())))
}

// note counts a panic.
func (l *Log) note(of string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.count++
	l.mu.last, l.mu.of = now, of
}

// Check returns an error for a minute after each panic.
func (l *Log) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ago := time.Since(l.mu.last); l.mu.count > 0 && ago < Recent {
		return fmt.Errorf(
			"a bug of this library: %s panicked %v ago, and there were %d panics in all; see the log",
			l.mu.of, ago.Round(time.Second), l.mu.count)
	}
	return nil
}

// extensionID is allocated once per process, since the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// registering guards our slot in the registry of every system, which is not synchronised.
var registering sync.Mutex

// extension is the Log of one actor system, and what limits the lines about functions of the
// application that fail there, by what they do.
type extension struct {
	Log
	functions sync.Map // of string and *Sparse
}

// ExtensionID implements extensions.Extension.
func (*extension) ExtensionID() extensions.ExtensionID { return extensionID }

// Of returns the Log of an actor system, whose Check is part of the member's health.
func Of(system *actor.ActorSystem) *Log { return &extensionOf(system).Log }

// OfFunction returns what limits the lines about functions of the application that fail at what.
func OfFunction(system *actor.ActorSystem, what string) *Sparse {
	lines, _ := extensionOf(system).functions.LoadOrStore(what, &Sparse{})
	return lines.(*Sparse)
}

func extensionOf(system *actor.ActorSystem) *extension {
	registering.Lock()
	defer registering.Unlock()
	if e, ok := system.Extensions.Get(extensionID).(*extension); ok {
		return e
	}
	e := &extension{}
	system.Extensions.Register(e)
	lifecycle.OnCheck(system, "panics", e.Check)
	return e
}

// Report records a panic of a component of an actor system, and increments count unless it is nil.
// Call it in the deferred function that has recovered p.
func Report(system *actor.ActorSystem, of, while string, p any, count *atomic.Uint64) {
	if count != nil {
		count.Add(1)
	}
	Of(system).Report(system.Logger(), of, while, p)
}

// Guardian makes an actor start again after each panic, after a pause that grows with the panics
// within ten seconds, and reports the panic.
func Guardian(of string, count *atomic.Uint64) actor.PropsOption {
	return actor.WithGuardian(&guardian{of, count,
		actor.NewExponentialBackoffStrategy(10*time.Second, 100*time.Millisecond)})
}

type guardian struct {
	of     string
	count  *atomic.Uint64
	delays actor.SupervisorStrategy
}

// HandleFailure implements actor.SupervisorStrategy. Proto.Actor calls it in the deferred function
// that has recovered the panic.
func (g *guardian) HandleFailure(system *actor.ActorSystem, sup actor.Supervisor, who *actor.PID,
	rs *actor.RestartStatistics, reason, message any) {
	_, m, _ := actor.UnwrapEnvelope(message)
	Report(system, g.of, fmt.Sprintf("handling a %T", m), reason, g.count)
	g.delays.HandleFailure(system, sup, who, rs, reason, message)
}
