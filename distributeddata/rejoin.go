package distributeddata

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/lifecycle"
)

// begin makes l the present incarnation.
func (r *Replicator) begin(l *binding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stuck := r.mu.present; stuck != nil { // its actor has not stopped yet
		r.last.Store(cmp.Or(stuck.published.Load().past(), r.last.Load()))
	}
	r.mu.incarnations++
	r.mu.present, r.mu.closed, r.mu.cfg, r.mu.log = l, nil, l.cfg, l.system.Logger()
	r.shut.Store(false)
	r.present.Store(l)
	r.ingress.bind(l)
	r.signalLocked()
}

// inheritance returns the state of the earlier incarnations for the actor of l, whose PID is pid.
func (r *Replicator) inheritance(l *binding, pid *actor.PID) []held {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.present != l {
		return nil
	}
	all := r.mu.held
	r.mu.held, r.mu.successor = nil, pid
	return all
}

// finished takes the state of l's actor. If the next incarnation is running already, because the
// actor of this one was stuck in user code, the state is sent to the next one.
func (r *Replicator) finished(l *binding, what held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.mu.present
	if next == l {
		next = nil
		r.mu.present, r.mu.successor = nil, nil
		r.present.Store(nil)
		if !r.mu.again {
			r.mu.closed = errors.Join(ErrClosed, l.failure)
		}
		r.shut.Store(r.mu.closed != nil)
		r.last.Store(cmp.Or(l.published.Load().past(), r.last.Load()))
	}
	switch {
	case what == nil || !r.mu.again:
	case next != nil && r.mu.successor != nil:
		contain.Send(next.system, r.mu.successor, &lateState{what})
	default:
		r.mu.held = append(r.mu.held, what)
	}
	r.signalLocked()
}

// isLast marks the present incarnation as the last: it leaves the cluster in order.
func (r *Replicator) isLast() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.again = false
}

// noMore records that there is no next incarnation.
func (r *Replicator) noMore() {
	r.mu.Lock()
	var lost uint64
	for _, h := range r.mu.held {
		for _, c := range h {
			lost += c.Uncopied()
		}
	}
	if lost > 0 {
		r.mu.log.Error("updates are lost: they are not known to be on any other replica",
			"replicator", r.name, "updates", lost)
	}
	r.mu.again, r.mu.closed, r.mu.held = false, ErrClosed, nil
	r.shut.Store(true)
	r.signalLocked()
	r.mu.Unlock()
	r.ingress.close(nil)
}

func (r *Replicator) signal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signalLocked()
}

// signalLocked wakes all waiters for a change of r.mu.
func (r *Replicator) signalLocked() {
	close(r.mu.changed)
	r.mu.changed = make(chan struct{})
}

// look returns the present incarnation, or nil between two incarnations, and a channel that is
// closed when that changes. It returns an error if there is no incarnation and callers must not
// wait for one.
func (r *Replicator) look() (l *binding, changed <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed != nil {
		return nil, nil, r.mu.closed
	}
	return r.mu.present, r.mu.changed, nil
}

// living returns the present incarnation once its actor runs. Between incarnations it waits for the
// next one until ctx is done, or for Config.OperationTimeout if ctx has no deadline. Before the
// first incarnation it does not wait.
func (r *Replicator) living(ctx context.Context) (*binding, error) {
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
			return nil, errNotYet
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("distributeddata: replicator %q: nothing was done: %w: %w",
				r.name, lifecycle.ErrRejoining, context.Cause(ctx))
		}
	}
}

// first reports whether l is the first incarnation and does not run yet.
func (r *Replicator) first(l *binding) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.incarnations == 1 && r.mu.present == l && l.state.Load() == bound
}

// bounded returns ctx, with a timeout of Config.OperationTimeout if ctx has no deadline.
func (r *Replicator) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return context.WithTimeout(ctx, r.mu.cfg.OperationTimeout)
}

// state returns the present state, with the open entries, or nil before the first incarnation has
// run.
func (r *Replicator) state() *replicatorView {
	if l := r.present.Load(); l != nil {
		if p := l.front.state(); p != nil {
			return p
		}
	}
	return r.last.Load()
}

// entry returns an entry that open events have changed; nil if none has.
func (r *Replicator) entry(key string) *openEntry {
	if l := r.present.Load(); l != nil {
		return l.front.entry(key)
	}
	return nil
}

// published returns the state that reads of one entry show if it is not open; otherwise it is like
// readable.
func (r *Replicator) published() *replicatorView {
	if r.shut.Load() {
		return nil
	}
	if l := r.present.Load(); l != nil {
		if p := l.published.Load(); p != nil {
			return p
		}
	}
	return r.last.Load()
}

// readable returns the state that reads show. It is nil before the first incarnation has run, and
// after the replicator has been closed.
func (r *Replicator) readable() *replicatorView {
	if r.shut.Load() {
		return nil
	}
	return r.state()
}

// unreadable returns the error of a read that finds nothing readable.
func (r *Replicator) unreadable() error {
	switch {
	case r.pid == nil:
		return errNoReplicator
	case r.shut.Load():
		return ErrClosed
	}
	return errNotYet
}

// goesOn reports whether there may be a next incarnation that calls may wait for.
func (r *Replicator) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.again && r.mu.closed == nil
}
