package distributeddata

import (
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/internal/bugs"
)

// userCall is a period in which the actor runs an application function: Modify, Adapt or a codec.
type userCall struct{ what *atomic.Pointer[string] }

// beginUserCall records that the actor runs an application function, for the key or other subject
// what.
func (r *Replicator) beginUserCall(what *string) userCall {
	r.userCall.Store(what)
	return userCall{&r.userCall}
}

func (h userCall) done() { h.what.Store(nil) }

// running returns the subject of the application function that runs on the goroutine of the actor,
// or on that of a caller of an update; nil if there is none.
func (r *Replicator) running() *string {
	if what := r.userCall.Load(); what != nil {
		return what
	}
	if l := r.present.Load(); l != nil {
		return l.front.runs.Load()
	}
	return nil
}

// reentrant returns ErrInvalid for a replicator that New has not made, and inside a function that
// the replicator runs, where a call that waits for the actor or for the lock would deadlock. The
// call stack is inspected only while such a function runs.
func (r *Replicator) reentrant() error {
	if r == nil || r.pid == nil {
		return errNoReplicator
	}
	what := r.running()
	if what == nil || !r.number.runs() {
		return nil
	}
	return fmt.Errorf("%w: called from inside the replicator, in a function passed for %q",
		ErrInvalid, *what)
}

// blockedAfter is how long an application function runs before operators are told.
const blockedAfter = 2 * time.Second

// blockage is an application function that was running when somebody waited for the replicator.
type blockage struct {
	what   *string // of this run of the function alone
	since  time.Time
	logged atomic.Bool
}

// blocked returns the application function that occupies the replicator, and how long ago it was
// first seen; nil if there is none.
func (r *Replicator) blocked() (b *blockage, so time.Duration) {
	what := r.running()
	if what == nil {
		return nil, 0
	}
	now := time.Now()
	if b = r.block.Load(); b == nil || b.what != what {
		b = &blockage{what: what, since: now}
		r.block.Store(b)
	}
	return b, now.Sub(b.since)
}

// busy wraps why, the reason for which a call has ended, with the application function that
// occupies the replicator, if there is one.
func (r *Replicator) busy(why error) error {
	b, so := r.blocked()
	if b == nil {
		return why
	}
	if so >= blockedAfter && !b.logged.Swap(true) {
		_ = guarded(func() error { // the log handler is the application's too
			r.log().Warn("a function of the application occupies the replicator",
				slog.String("replicator", r.name), slog.String("what", *b.what),
				slog.Duration("for", so), slog.String("then", "no update, and no read at a majority, "+
					"is done at this member until the function returns"),
				slog.String("check", "functions passed to the replicator must not wait"))
			return nil
		})
	}
	return fmt.Errorf("the replicator is busy in a function passed for %q: %w", *b.what, why)
}

// free returns an error if an application function has occupied the replicator for long.
func (r *Replicator) free() error {
	if b, so := r.blocked(); so >= blockedAfter {
		return fmt.Errorf("the replicator has been busy for %v in a function passed for %q",
			so.Round(time.Second), *b.what)
	}
	return nil
}

func (r *Replicator) log() *slog.Logger {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.log
}

// numbers generates a unique number for each Replicator of the process.
var numbers atomic.Uint64

// number identifies the replicator that a goroutine works for. It is encoded in the call stack,
// since goroutines have no other identity: run calls f below a frame of marked and frames of zero
// and one, which are the bits of the number, lowest bit first.
type number uint64

// run calls f for the replicator with the number.
func (n number) run(f func()) { marked(n, f) }

//go:noinline
func marked(n number, f func()) { n.bits(f) }

func (n number) bits(f func()) {
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
func zero(n number, f func()) { n.bits(f) }

//go:noinline
func one(n number, f func()) { n.bits(f) }

// runs reports whether this goroutine is inside run of the number.
func (n number) runs() bool {
	pcs := make([]uintptr, 64)
	for runtime.Callers(1, pcs) == len(pcs) {
		pcs = make([]uintptr, 2*len(pcs))
	}
	isZero, isOne, isRun := entryOf(zero), entryOf(one), entryOf(marked)
	of := number(0)
	for _, pc := range pcs[:runtime.Callers(1, pcs)] { // innermost frame first
		switch runtime.FuncForPC(pc - 1).Entry() {
		case isZero:
			of *= 2
		case isOne:
			of = 2*of + 1
		case isRun:
			if of == n {
				return true
			}
			of = 0
		}
	}
	return false
}

// entryOf returns the address of a function.
func entryOf(f func(number, func())) uintptr { return reflect.ValueOf(f).Pointer() }

// faults counts misbehaviour of application functions, and logs it at most once a second.
type faults struct {
	count atomic.Uint64
	lines bugs.Sparse
}

// fault records that an application function panicked or ended its goroutine.
func (r *Replicator) fault(what string, err error) {
	r.faults.count.Add(1)
	unlogged, due := r.faults.lines.Due(time.Now(), time.Second)
	if !due {
		return
	}
	_ = guarded(func() error { // the log handler is the application's too
		r.log().Error("a function of the application failed", slog.String("replicator", r.name),
			slog.String("what", what), slog.Any("error", err), slog.Int("unlogged", unlogged),
			slog.String("stack", stackOf(err)))
		return nil
	})
}
