package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// Phase is a step of the graceful stop. Phases run in the order of their numbers; the functions of
// one phase run concurrently.
type Phase int

// The phases of the graceful stop.
const (
	Ingress    Phase = iota // accept no new work
	Sharding                // hand over shards
	Singleton               // hand over singletons
	Leases                  // release leases
	Replicator              // flush and stop replicators
	Session                 // end the session with the lease store
	phases
)

var phaseNames = [phases]string{"ingress", "sharding", "singleton", "leases",
	"replicator", "session"}

// String returns the name for logs.
func (p Phase) String() string {
	if p >= 0 && p < phases {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", int(p))
}

// extensionID is allocated once per process, since the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// registering guards our slot in the registry of every system, which is not synchronised.
var registering sync.Mutex

type hook struct {
	name string
	run  func(context.Context) error
}

// Hooks holds the functions registered for one actor system.
type Hooks struct {
	system *actor.ActorSystem
	done   chan struct{} // closed when the stop is over

	mu struct {
		sync.Mutex
		start   []*hook
		watch   []*hook
		checks  []check
		hosted  []func(addresses []string) string
		stop    [phases][]*hook
		stopped bool // the stop has begun
		err     error
	}
}

// ExtensionID implements extensions.Extension.
func (*Hooks) ExtensionID() extensions.ExtensionID { return extensionID }

// Of returns the hooks of system.
func Of(system *actor.ActorSystem) *Hooks {
	registering.Lock()
	defer registering.Unlock()
	if h, ok := system.Extensions.Get(extensionID).(*Hooks); ok {
		return h
	}
	h := &Hooks{system: system, done: make(chan struct{})}
	system.Extensions.Register(h)
	return h
}

// OnStart registers ready, which waits until a component is usable or its context ends. The member
// counts as started when all registered functions have returned nil.
func OnStart(system *actor.ActorSystem, name string, ready func(context.Context) error) {
	h := Of(system)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.start = append(h.mu.start, &hook{name, ready})
}

// WhileStarting registers watch, which runs until the member has started or its context ends. If it
// returns an error before, the member cannot start.
func WhileStarting(system *actor.ActorSystem, name string, watch func(context.Context) error) {
	h := Of(system)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.watch = append(h.mu.watch, &hook{name, watch})
}

// OnStop registers stop to be run once when the member leaves. cancel removes it, for components
// that are closed earlier; it does not wait for a running stop. If the stop of the member has
// already begun, OnStop returns ErrStopping and does not register the function; the component must
// then not start.
func OnStop(system *actor.ActorSystem, p Phase, name string,
	stop func(context.Context) error) (cancel func(), err error) {
	if p < 0 || p >= phases {
		return nil, fmt.Errorf("lifecycle: %s: no such phase: %d", name, int(p))
	}
	h := Of(system)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.stopped {
		return nil, ErrStopping
	}
	k := &hook{name, stop}
	h.mu.stop[p] = append(h.mu.stop[p], k)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for i, o := range h.mu.stop[p] {
			if o == k {
				// Allocate a new slice, since a running stop may read the old one.
				h.mu.stop[p] = append(append([]*hook(nil), h.mu.stop[p][:i]...),
					h.mu.stop[p][i+1:]...)
				return
			}
		}
	}, nil
}

// Stopping reports whether the stop has begun.
func (h *Hooks) Stopping() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.stopped
}

// Start runs the functions registered with OnStart concurrently, beside those registered with
// WhileStarting. If one of them fails before ctx has ended, the member cannot start: Start ends the
// others, and returns that error alone. Otherwise it returns all errors.
func (h *Hooks) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := func(ctx context.Context, k *hook) error {
		err := guard(ctx, k)
		if err != nil && ctx.Err() == nil {
			cancel(&startError{fmt.Errorf("%s: %w", label("start", k.name), err)})
		}
		return err
	}
	h.mu.Lock()
	var hooks []*hook
	for _, k := range h.mu.start {
		hooks = append(hooks, &hook{k.name, func(ctx context.Context) error { return run(ctx, k) }})
	}
	for _, k := range h.mu.watch {
		go func() { _ = run(ctx, k) }() // its error is the cause
	}
	h.mu.Unlock()
	err := h.all(ctx, "start", hooks)
	if first, ok := errors.AsType[*startError](context.Cause(ctx)); ok {
		return first.error
	}
	return err
}

// startError is the cause for which Start ends the other functions.
type startError struct{ error }

// Stop runs the phases in order, then last, and returns all errors. A later or concurrent call
// waits for the first one and returns the same error, or the error of its own context if that ends
// first. If ctx has a deadline, each phase may take all the remaining time but half of an equal
// share for each following one: the phase that moves shards takes long, and most take milliseconds.
// If a phase fails or overruns, the following phases still run; with an ended context they do what
// they can without waiting.
func (h *Hooks) Stop(ctx context.Context, last func(context.Context) error) error {
	h.mu.Lock()
	first := !h.mu.stopped
	h.mu.stopped = true
	h.mu.Unlock()
	if !first {
		select {
		case <-h.done:
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.mu.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var errs []error
	var half time.Duration // of an equal share
	for p := range phases {
		h.mu.Lock()
		hooks, steps := h.mu.stop[p], 1 // last
		for _, later := range h.mu.stop[p:] {
			if len(later) > 0 {
				steps++
			}
		}
		h.mu.Unlock()
		if len(hooks) == 0 {
			continue
		}
		if half == 0 {
			half = halfShare(ctx, steps)
		}
		part, cancel := within(ctx, half*time.Duration(steps-1))
		errs = append(errs, h.all(part, p.String(), hooks))
		cancel()
	}
	if last != nil {
		errs = append(errs, guard(ctx, &hook{"last", last}))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.err = errors.Join(errs...)
	close(h.done)
	return h.mu.err
}

// halfShare returns half of the n-th part of the remaining time of ctx.
func halfShare(ctx context.Context, n int) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return time.Until(end) / time.Duration(2*n)
}

// within returns a context that ends so long before ctx.
func within(ctx context.Context, rest time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-rest))
}

// all runs hooks concurrently. It does not wait for a hook that has not returned when ctx has
// ended; the goroutine of such a hook ends when the hook returns.
func (h *Hooks) all(ctx context.Context, phase string, hooks []*hook) error {
	type outcome struct {
		i   int
		err error
	}
	results := make(chan outcome, len(hooks))
	for i, k := range hooks {
		go func() { results <- outcome{i, guard(ctx, k)} }()
	}
	errs := make([]error, len(hooks))
	open := make(map[int]bool, len(hooks))
	for i := range hooks {
		open[i] = true
	}
	take := func(o outcome) {
		delete(open, o.i)
		if o.err != nil {
			errs[o.i] = fmt.Errorf("%s: %w", label(phase, hooks[o.i].name), o.err)
		}
	}
	late := time.After(slow)
	for len(open) > 0 {
		select {
		case o := <-results:
			take(o)
			continue
		case <-late:
			h.late(phase, hooks, open)
			continue
		case <-ctx.Done():
		}
		// Give hooks that obey ctx a moment to return.
		select {
		case o := <-results:
			take(o)
		case <-time.After(grace):
			for i := range open {
				errs[i] = fmt.Errorf("%s: did not stop in time: %w",
					label(phase, hooks[i].name), context.Cause(ctx))
			}
			h.system.Logger().Error("components did not stop in time",
				slog.String("phase", phase), slog.String("components", names(hooks, open)))
			return join(errs)
		}
	}
	return join(errs)
}

// join returns an error that matches all of errs and names the first eight, or nil.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return many(errs)
}

// many are the errors of one phase. A program may have thousands of components.
type many []error

func (m many) Error() string {
	texts := make([]string, len(m))
	for i, err := range m {
		texts[i] = err.Error()
	}
	return Few(texts, "\n")
}

func (m many) Unwrap() []error { return m }

// Few joins texts for logs and errors, and counts those after the first eight: a line about a
// thousand has as many words as one about ten.
func Few(texts []string, separator string) string {
	const most = 8
	if more := len(texts) - most; more > 1 {
		return fmt.Sprintf("%s%sand %d more", strings.Join(texts[:most], separator),
			strings.TrimPrefix(separator, ","), more)
	}
	return strings.Join(texts, separator)
}

// slow is how long a phase may take before the hooks that have not returned are logged.
const slow = 10 * time.Second

// late logs which of the hooks are open.
func (h *Hooks) late(phase string, hooks []*hook, open map[int]bool) {
	h.system.Logger().Warn("still waiting for components", slog.String("phase", phase),
		slog.String("address", h.system.Address()), slog.String("components", names(hooks, open)),
		slog.Duration("for", slow))
}

// names names the hooks that are open.
func names(hooks []*hook, open map[int]bool) string {
	var all []string
	for i, k := range hooks {
		if open[i] {
			all = append(all, k.name)
		}
	}
	return Few(all, ", ")
}

// label names a hook in errors, without the phase twice: the name of many hooks begins with it.
func label(phase, name string) string {
	if name == phase {
		return phase
	}
	return fmt.Sprintf("%s %q", phase, strings.TrimPrefix(name, phase+" "))
}

// guard converts a panic to an error.
func guard(ctx context.Context, k *hook) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return k.run(ctx)
}
