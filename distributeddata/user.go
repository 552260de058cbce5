package distributeddata

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// hosting is the time in which the actor runs functions of the application: Modify, Adapt, codecs.
type hosting struct{ what *atomic.Pointer[string] }

// host notes that the actor runs a function of the application, for a key or something else.
func (r *Replicator) host(what *string) hosting {
	r.hosts.Store(what)
	return hosting{&r.hosts}
}

func (h hosting) done() { h.what.Store(nil) }

// reentrant returns ErrReentrant on the goroutine of the actor: a call that waits for the actor there would wait
// for itself. The call stack is looked at only while the actor runs a function of the application.
func (r *Replicator) reentrant() error {
	what := r.hosts.Load()
	if what == nil || current() != r.number {
		return nil
	}
	return fmt.Errorf("%w: in a function that was given for %q", ErrReentrant, *what)
}

// busy adds to why a call has ended what the goroutine of the actor is busy with, if that is a function of the application.
func (r *Replicator) busy(why error) error {
	if what := r.hosts.Load(); what != nil {
		return fmt.Errorf("the replicator's goroutine is busy in a function that was given for %q: %w", *what, why)
	}
	return why
}

// numbers gives each Replicator of the process another number.
var numbers atomic.Uint64

// number tells the goroutines of one actor from all others. It is written into the call stack, since nothing
// else names a goroutine: run calls f below frames of zero and one, the bits of the number from the lowest on.
type number uint64

func (n number) run(f func()) {
	switch {
	case n == 0:
		f()
	case n%2 == 0:
		zero(n/2, f)
	default:
		one(n/2, f)
	}
}

//go:noinline
func zero(n number, f func()) { n.run(f) }

//go:noinline
func one(n number, f func()) { n.run(f) }

// current returns the number of the replicator whose actor runs on this goroutine, 0 if none does.
func current() (n number) {
	pcs := make([]uintptr, 64)
	for runtime.Callers(1, pcs) == len(pcs) {
		pcs = make([]uintptr, 2*len(pcs))
	}
	isZero, isOne := reflect.ValueOf(zero).Pointer(), reflect.ValueOf(one).Pointer()
	for _, pc := range pcs[:runtime.Callers(1, pcs)] { // the innermost first
		switch runtime.FuncForPC(pc - 1).Entry() {
		case isZero:
			n *= 2
		case isOne:
			n = 2*n + 1
		}
	}
	return n
}

// faults counts what functions of the application did that they must not, and logs it once a second at most.
type faults struct {
	count  atomic.Uint64
	mu     sync.Mutex
	logged time.Time
	silent int // since then
}

// due reports whether a line may be logged at now, and how many have not been since the last one.
func (f *faults) due(now time.Time) (silent int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.logged) < time.Second {
		f.silent++
		return 0, false
	}
	silent, f.logged, f.silent = f.silent, now, 0
	return silent, true
}

// fault notes that a function of the application panicked or ended its goroutine.
func (r *Replicator) fault(what string, err error) {
	r.faults.count.Add(1)
	r.mu.Lock()
	log := r.mu.log
	r.mu.Unlock()
	silent, now := r.faults.due(time.Now())
	if !now {
		return
	}
	_ = guarded(func() error { // the handler of the log is the application's too
		log.Error("a function of the application failed", slog.String("replicator", r.name), slog.String("what", what),
			slog.Any("error", err), slog.Int("unlogged", silent), slog.String("stack", stackOf(err)))
		return nil
	})
}
