package fence

import (
	"context"
	"fmt"
	"sync"

	"github.com/concord-go/concord/coordination"
)

// defaultLimit resources take about 10 MB with short names, and never more than 30 MB.
const defaultLimit = 1 << 16

// Guard fences effects of this process in memory. The zero value knows no resources and is ready to
// use. A Guard is safe for concurrent use and must not be copied. It starts no goroutine.
//
// A Guard forgets all tokens when its process restarts: it then admits an old token until the first
// newer one arrives. Where that matters, keep the tokens beside the data, as Table does.
type Guard struct {
	// Limit is the maximum number of resources. A call for one more fails with ErrFull, because
	// forgetting another resource would admit stale tokens there. 0 means 65,536. Do not
	// change Limit after the first use.
	Limit int

	mu struct {
		sync.Mutex
		resources map[string]*resource
	}
}

// resource is the state of one resource. Invariant: all running effects carry one token, which is
// at most highest.
type resource struct {
	highest coordination.Token
	running coordination.Token // of the running effects
	effects map[*effect]struct{}
	idle    chan struct{} // closed when the last effect has returned; nil if none is running
}

type effect struct{ stale context.CancelCauseFunc }

// Do runs f and returns its error, unless a higher token has been seen: then it returns a
// *StaleError without running f.
//
// Effects with the same token run concurrently. A higher token rejects lower ones from the moment
// it arrives. The contexts of running effects with a lower token end with a *StaleError as the
// cause, and Do waits for these effects to return before it runs f. If ctx ends first, Do does not
// run f and the error wraps the cause of ctx; the token still counts as seen. So f should observe
// its context: an f that never returns blocks newer tokens. f must not call Do for the same
// resource with a higher token, because that call would wait for f itself.
func (g *Guard) Do(ctx context.Context, name string, token coordination.Token,
	f func(context.Context) error) error {
	if err := checkResource(name); err != nil {
		return err
	}
	if err := checkToken(token); err != nil {
		return fmt.Errorf("resource %q: %w", name, err)
	}
	under, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e := &effect{cancel}
	r, err := g.enter(ctx, name, token, e)
	if err != nil {
		return err
	}
	defer g.leave(r, e)
	return f(under)
}

// Forget removes a resource that will never be used again, and makes room for another. It does
// nothing and returns false while an effect on the resource is running.
func (g *Guard) Forget(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok := g.mu.resources[name]
	if ok && r.idle != nil {
		return false
	}
	delete(g.mu.resources, name)
	return true
}

// enter records the token and waits until no effect with a lower token is running.
func (g *Guard) enter(ctx context.Context, name string, token coordination.Token,
	e *effect) (*resource, error) {
	for {
		r, busy, err := g.tryEnter(name, token, e)
		if err != nil || busy == nil {
			return r, err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("resource %q: waiting for an effect with a lower token: %w",
				name, context.Cause(ctx))
		}
	}
}

// tryEnter returns a channel to wait for while effects with a lower token are running.
func (g *Guard) tryEnter(name string, token coordination.Token,
	e *effect) (*resource, <-chan struct{}, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r, err := g.resourceLocked(name)
	if err != nil {
		return nil, nil, err
	}
	if token < r.highest {
		return nil, nil, &StaleError{name, token, r.highest}
	}
	r.highest = token
	if r.idle != nil && r.running < token {
		for lower := range r.effects {
			lower.stale(&StaleError{name, r.running, token})
		}
		return nil, r.idle, nil
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	r.running = token
	r.effects[e] = struct{}{}
	return r, nil, nil
}

func (g *Guard) resourceLocked(name string) (*resource, error) {
	if r, ok := g.mu.resources[name]; ok {
		return r, nil
	}
	limit := g.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	if len(g.mu.resources) >= limit {
		return nil, fmt.Errorf("%w: %q is beyond the limit of %d", ErrFull, name, limit)
	}
	if g.mu.resources == nil {
		g.mu.resources = map[string]*resource{}
	}
	r := &resource{effects: map[*effect]struct{}{}}
	g.mu.resources[name] = r
	return r, nil
}

func (g *Guard) leave(r *resource, e *effect) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(r.effects, e)
	if len(r.effects) == 0 {
		close(r.idle)
		r.idle = nil
	}
}
