package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// Phase is a step of the ordered stop. Phases run in the order of their numbers; what is registered in
// one phase runs at once, side by side.
type Phase int

// Phases of the ordered stop.
const (
	Ingress    Phase = iota // take no new work in
	Sharding                // hand over shards
	Singleton               // hand over singletons
	Leases                  // release leases
	Replicator              // flush and stop replicators
	Session                 // end the session towards the lease store
	phases
)

var phaseNames = [phases]string{"ingress", "sharding", "singleton", "leases", "replicator", "session"}

// String returns the name for logs.
func (p Phase) String() string {
	if p >= 0 && p < phases {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", int(p))
}

// extensionID is taken once per process: the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// registering guards our slot of every system's registry, which is not synchronised.
var registering sync.Mutex

type hook struct {
	name string
	run  func(context.Context) error
}

// Hooks are those of one actor system.
type Hooks struct {
	system *actor.ActorSystem
	done   chan struct{} // closed when the stop is over

	mu struct {
		sync.Mutex
		start   []*hook
		checks  []check
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

// OnStart registers ready, which waits until a component can be used or its context ends. The member
// counts as started when all have returned nil.
func OnStart(system *actor.ActorSystem, name string, ready func(context.Context) error) {
	h := Of(system)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.start = append(h.mu.start, &hook{name, ready})
}

// OnStop registers stop to be run once when the member leaves. cancel takes it back, for components that
// are closed earlier; it does not wait for a stop that is running. Registered when the stop has begun,
// it is not run, and OnStop returns ErrStopping: the component must not start.
func OnStop(system *actor.ActorSystem, p Phase, name string, stop func(context.Context) error) (cancel func(), err error) {
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
				// A new slice: a stop that is running may read the old one.
				h.mu.stop[p] = append(append([]*hook(nil), h.mu.stop[p][:i]...), h.mu.stop[p][i+1:]...)
				return
			}
		}
	}, nil
}

// Start runs what was registered with OnStart, side by side, and returns every error.
func (h *Hooks) Start(ctx context.Context) error {
	h.mu.Lock()
	hooks := append([]*hook(nil), h.mu.start...)
	h.mu.Unlock()
	return h.all(ctx, "start", hooks)
}

// Stop runs the phases in order, then last, and returns every error. A later or concurrent call waits for
// the first one and returns the same error, or its own context's when that ends first. If ctx has a
// deadline, each phase has an equal share of the time that is left. A phase that fails or overruns does
// not keep the next ones from running: with an ended context they do what they can without waiting.
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
		part, cancel := share(ctx, steps)
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

// share returns a context with the n-th part of what is left of ctx.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
}

// all runs hooks side by side. One that does not return when ctx has ended is given up: its goroutine
// ends when it returns.
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
			errs[o.i] = fmt.Errorf("%s %q: %w", phase, hooks[o.i].name, o.err)
		}
	}
	for len(open) > 0 {
		select {
		case o := <-results:
			take(o)
			continue
		case <-ctx.Done():
		}
		// What obeys ctx gets a moment to say so.
		select {
		case o := <-results:
			take(o)
		case <-time.After(grace):
			for i := range open {
				errs[i] = fmt.Errorf("%s %q: did not stop in time: %w", phase, hooks[i].name, context.Cause(ctx))
				h.system.Logger().Error("component did not stop in time",
					slog.String("phase", phase), slog.String("component", hooks[i].name))
			}
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// guard turns a panic into an error.
func guard(ctx context.Context, k *hook) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return k.run(ctx)
}
