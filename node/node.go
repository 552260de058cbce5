package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Node is one incarnation of the member that Run keeps in the cluster. Run passes it to the
// register function. When its Context ends, drop all references to it and to everything created
// with its System: an actor system holds 3 MB of memory.
type Node struct {
	// System and Cluster are the actor system and the cluster of this incarnation.
	System  *actor.ActorSystem
	Cluster *cluster.Cluster
	// Session is the session with the lease store, the same one in every incarnation. It is nil
	// without RunConfig.Store.
	Session *coordination.Session
	// Incarnation is the number of this incarnation of the member in its process, from 1.
	Incarnation int

	store coordination.Store // nil without RunConfig.Store

	ctx context.Context
	end context.CancelCauseFunc

	mu struct {
		sync.Mutex
		work    []func(context.Context) error
		begun   bool
		ended   bool
		last    bool // no incarnation follows
		failure error
	}
	working sync.WaitGroup
	failed  chan struct{} // closed with the first failure
	counted atomic.Int64  // how many members there are, by the arbiter; 0: not known
}

// Context returns a context that ends when this incarnation begins to stop. Its cause matches
// ErrRemoved if another incarnation may follow; otherwise it is the cause of the context passed to
// Run.
func (n *Node) Context() context.Context { return n.ctx }

// Go runs work in its own goroutine once the member is ready, or at once if it already is. The
// context of work is the context of the incarnation. When it ends, work has its share of
// RunConfig.StopTimeout to return; components stop only after that. If work returns an error,
// panics or calls runtime.Goexit before the context has ended, the member stops and Run returns the
// error. After the end of the incarnation, Go does nothing.
func (n *Node) Go(work func(context.Context) error) {
	if work == nil {
		work = func(context.Context) error { return errNoWork }
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.mu.ended:
	case n.mu.begun:
		n.run(work)
	default:
		n.mu.work = append(n.mu.work, work)
	}
}

// Document returns a document in the lease store, for use as distributeddata.Config.Membership. It
// is the same document in every incarnation, and works until the components have stopped. The error
// matches ErrInvalid without RunConfig.Store, and coordination.ErrInvalid if the store does not
// support documents or the name is invalid. Document reads nothing from the store.
func (n *Node) Document(name string) (*coordination.Document, error) {
	if n.store == nil {
		return nil, fmt.Errorf("%w: document %.80q: RunConfig.Store must be set", ErrInvalid, name)
	}
	return coordination.NewDocument(n.store, name)
}

// onStop registers stop to run in the given phase when this incarnation ends.
func (n *Node) onStop(p lifecycle.Phase, name string, stop func(context.Context) error) error {
	_, err := lifecycle.OnStop(n.System, p, name, stop)
	return err
}

// begin starts the work passed to Go so far.
func (n *Node) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.begun = true
	for _, work := range n.mu.work {
		n.run(work)
	}
	n.mu.work = nil
}

// run starts work; mu is held.
func (n *Node) run(work func(context.Context) error) {
	n.working.Go(func() {
		if err := <-shielded(n.ctx, work); err != nil && n.ctx.Err() == nil {
			n.fail(fmt.Errorf("node: work: %w", err))
		}
	})
}

func (n *Node) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.failure == nil {
		n.mu.failure = err
		close(n.failed)
	}
}

func (n *Node) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.failure
}

func (n *Node) setLast() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.last = true
}

func (n *Node) last() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.last
}

// settle waits for work to return after the end of the context.
func (n *Node) settle(ctx context.Context) error {
	n.mu.Lock()
	n.mu.ended = true
	n.mu.Unlock()
	if err := lifecycle.Wait(ctx, &n.working); err != nil {
		return fmt.Errorf("work given to Go has not returned: %w", err)
	}
	return nil
}

// errNoWork is the error of work that is nil.
var errNoWork = errors.New("the function passed to Go is nil")

// errGoexit is the error of a user function that called runtime.Goexit.
var errGoexit = errors.New("runtime.Goexit was called")

// shielded calls a user function in its own goroutine and converts a panic or Goexit into an error.
// That of a panic contains its stack, since the process usually ends with this error.
func shielded(ctx context.Context, f func(context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
			done <- err
		}()
		err = f(ctx)
	}()
	return done
}

// within calls a function of the application that must return within StartTimeout. After ctx has
// ended it waits for half of StopTimeout only, since the process is to stop.
func (r *runner) within(ctx context.Context, what string, f func(context.Context) error) error {
	defer r.blocking.Begin(func() *slog.Logger { return r.cfg.Logger }, what,
		"the start fails when StartTimeout has passed")()
	done := shielded(ctx, f)
	late, asked, over := time.After(r.cfg.StartTimeout), ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case err := <-done:
			return err
		case <-late:
			return fmt.Errorf("has not returned after %v", r.cfg.StartTimeout)
		case <-asked:
			asked, over = nil, time.After(r.cfg.StopTimeout/2)
		case <-over:
			return fmt.Errorf("%w: has not returned when the member was to stop", ErrStop)
		}
	}
}

// prepare attaches this incarnation, and registers settle to run when the incarnation stops.
func (n *Node) prepare(incarnations *lifecycle.Incarnations) error {
	incarnations.Attach(n.System)
	return n.onStop(lifecycle.Ingress, "work", n.settle)
}
