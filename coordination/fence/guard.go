package fence

import (
	"context"
	"fmt"
	"sync"

	"github.com/concord-go/concord/coordination"
)

// DefaultLimit is how many resources a Guard knows if it does not say otherwise: some 10 MB of short names, and
// never more than 30.
const DefaultLimit = 1 << 16

// Guard fences effects of this process in memory. The zero value knows no resources and is ready. It is
// safe for concurrent use and must not be copied. It starts no goroutine.
//
// It knows nothing of its time before a restart: an old token is admitted until the first newer one
// comes. Where that matters keep the tokens beside the data, as Table does.
type Guard struct {
	// Limit is the number of resources it knows; one more is refused with ErrFull, since to forget
	// another would let stale tokens in there. 0 is DefaultLimit. Do not change it after the first use.
	Limit int

	mu struct {
		sync.Mutex
		resources map[string]*resource
	}
}

// resource is what is known of one name.
// Invariant: all effects under way carry one token, which is at most highest.
type resource struct {
	highest coordination.Token
	running coordination.Token // of the effects under way
	effects map[*effect]struct{}
	idle    chan struct{} // closed when the last effect has ended; nil if none is under way
}

type effect struct{ stale context.CancelCauseFunc }

// Do runs f, unless a higher token has been seen: then the error is a *StaleError, and f has not run. Else it
// returns what f returns.
//
// Effects of one token run side by side. A higher token refuses lower ones from the moment it comes. The
// context of lower effects under way ends with a *StaleError as its cause, and Do waits for them to return
// before it runs f. When ctx ends first, f has not run, and the error wraps the cause of ctx; the token has
// been seen all the same. So f should heed its context; one that never returns keeps newer tokens waiting. f
// must not call Do for the same resource with a higher token, which would wait for itself.
func (g *Guard) Do(ctx context.Context, name string, token coordination.Token, f func(context.Context) error) error {
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

// Forget drops what is known of a resource that is gone for ever, and makes room for another. It reports
// false, and does nothing, while an effect on it is under way.
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

// enter notes the token and waits until no other runs.
func (g *Guard) enter(ctx context.Context, name string, token coordination.Token, e *effect) (*resource, error) {
	for {
		r, busy, err := g.tryEnter(name, token, e)
		if err != nil || busy == nil {
			return r, err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("resource %q: waiting for an effect with a lower token: %w", name, context.Cause(ctx))
		}
	}
}

// tryEnter returns what to wait for while effects with a lower token are under way.
func (g *Guard) tryEnter(name string, token coordination.Token, e *effect) (*resource, <-chan struct{}, error) {
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
		limit = DefaultLimit
	}
	if len(g.mu.resources) >= limit {
		return nil, fmt.Errorf("%w: %q, after %d", ErrFull, name, limit)
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
