package distributeddata

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// begin makes l the present life.
func (r *Replicator) begin(l *life) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stuck := r.mu.present; stuck != nil { // its actor has not stopped yet
		r.last.Store(cmp.Or(stuck.published.Load().past(), r.last.Load()))
	}
	r.mu.lives++
	r.mu.present, r.mu.closed, r.mu.cfg, r.mu.log = l, nil, l.cfg, l.system.Logger()
	r.shut.Store(false)
	r.present.Store(l)
	r.door.bind(l)
	r.signalLocked()
}

// inheritance returns what former lives held, for the actor of l, which is pid.
func (r *Replicator) inheritance(l *life, pid *actor.PID) []held {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.present != l {
		return nil
	}
	all := r.mu.held
	r.mu.held, r.mu.heir = nil, pid
	return all
}

// finished takes what the actor of l held. If the next life runs already, since the actor of this one was stuck in user
// code, it is brought there.
func (r *Replicator) finished(l *life, what held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.mu.present
	if next == l {
		next = nil
		r.mu.present, r.mu.heir = nil, nil
		r.present.Store(nil)
		if !r.mu.again {
			r.mu.closed = errors.Join(ErrClosed, l.failure)
		}
		r.shut.Store(r.mu.closed != nil)
		r.last.Store(cmp.Or(l.published.Load().past(), r.last.Load()))
	}
	switch {
	case what == nil || !r.mu.again:
	case next != nil && r.mu.heir != nil:
		next.system.Root.Send(r.mu.heir, &former{what})
	default:
		r.mu.held = append(r.mu.held, what)
	}
	r.signalLocked()
}

// isLast says that the present life is the last: it leaves the cluster in order.
func (r *Replicator) isLast() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.again = false
}

// noMore says that there is no next life.
func (r *Replicator) noMore() {
	r.mu.Lock()
	var lost uint64
	for _, h := range r.mu.held {
		for _, c := range h {
			lost += c.Uncopied()
		}
	}
	if lost > 0 {
		r.mu.log.Error("updates are lost: no other replica is known to have them",
			"replicator", r.name, "updates", lost)
	}
	r.mu.again, r.mu.closed, r.mu.held = false, ErrClosed, nil
	r.shut.Store(true)
	r.signalLocked()
	r.mu.Unlock()
	r.door.close(nil)
}

func (r *Replicator) signal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signalLocked()
}

// signalLocked wakes all who wait for another state.
func (r *Replicator) signalLocked() {
	close(r.mu.changed)
	r.mu.changed = make(chan struct{})
}

// look returns the present life, nil between two lives, and what is closed when that changes. The error says that
// there is none, and that nobody may wait for one.
func (r *Replicator) look() (l *life, changed <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed != nil {
		return nil, nil, r.mu.closed
	}
	return r.mu.present, r.mu.changed, nil
}

// living returns the present life when its actor runs, and waits for the next one between lives, until
// ctx or Config.OperationTimeout ends. Before the first one it does not wait.
func (r *Replicator) living(ctx context.Context) (*life, error) {
	if l := r.present.Load(); l != nil && l.state.Load() == running {
		return l, nil
	}
	ctx, cancel := r.bounded(ctx)
	defer cancel()
	for {
		l, changed, err := r.look()
		switch {
		case err != nil:
			return nil, err
		case l == nil:
		case l.state.Load() == running:
			return l, nil
		case r.first(l):
			return nil, fmt.Errorf("%w: the member has not started yet", ErrClosed)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("distributeddata: replicator %q: nothing was done: %w: %w", r.name, ErrBetweenLives, context.Cause(ctx))
		}
	}
}

// first reports whether l is the first life, and has not begun to run.
func (r *Replicator) first(l *life) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.lives == 1 && r.mu.present == l && l.state.Load() == bound
}

// bounded returns a context that ends after Config.OperationTimeout if ctx has no deadline.
func (r *Replicator) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return context.WithTimeout(ctx, r.mu.cfg.OperationTimeout)
}

// state returns what was published last: nil before the first life has run.
func (r *Replicator) state() *published {
	if l := r.present.Load(); l != nil {
		if p := l.published.Load(); p != nil {
			return p
		}
	}
	return r.last.Load()
}

// readable returns what reads show: nil before the first life has run, and once the replicator is closed.
func (r *Replicator) readable() *published {
	if r.shut.Load() {
		return nil
	}
	return r.state()
}

// goesOn reports whether there may be a next life, and calls may wait for it.
func (r *Replicator) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.again && r.mu.closed == nil
}
