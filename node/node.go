package node

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Node is one life of the member that Run keeps. It is given to the register function of Run; let go of it, and of
// everything that was made with its System, when its Context ends: an actor system keeps 3 MB alive.
type Node struct {
	// System and Cluster are those of this life.
	System  *actor.ActorSystem
	Cluster *cluster.Cluster
	// Session is the session towards the lease store, the same in every life; nil without RunConfig.Store.
	Session *coordination.Session
	// Life counts the lives of this process, from 1.
	Life int

	store coordination.Store // nil without RunConfig.Store

	ctx context.Context
	end context.CancelCauseFunc

	mu struct {
		sync.Mutex
		work    []func(context.Context) error
		begun   bool
		ended   bool
		last    bool // no life follows
		failure error
	}
	working sync.WaitGroup
	failed  chan struct{} // closed with the first failure
}

// Context ends when this life begins to stop. Its cause is one of ErrDropped, ErrExpelled and ErrGaveWay if another
// life may follow, else that of the context given to Run.
func (n *Node) Context() context.Context { return n.ctx }

// Go runs work in its own goroutine once the member is ready, or at once if it is. The context of work is that of
// the life: when it ends, work has its share of RunConfig.StopTimeout to return, and components stop only then. An
// error, a panic or runtime.Goexit while the context has not ended stops the member, and Run returns it. After the
// end of the life Go does nothing.
func (n *Node) Go(work func(context.Context) error) {
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

// Document returns a document in the lease store, as distributeddata.Config.Membership takes it. It is the same one in
// every life, and works until the components have stopped. The error is ErrInvalid without RunConfig.Store, and
// coordination.ErrInvalid if the store keeps no documents or the name is none. Nothing is read yet.
func (n *Node) Document(name string) (*coordination.Document, error) {
	if n.store == nil {
		return nil, fmt.Errorf("%w: document %.80q: RunConfig.Store must be set", ErrInvalid, name)
	}
	return coordination.NewDocument(n.store, name)
}

// OnStop registers stop to be run when this life ends, in the given phase. It is OnStop on System.
func (n *Node) OnStop(p Phase, name string, stop func(context.Context) error) error {
	_, err := OnStop(n.System, p, name, stop)
	return err
}

// begin runs the work that was given so far.
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
		if err := shielded(n.ctx, work); err != nil && n.ctx.Err() == nil {
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

// settle waits for the work to return after the end of the context.
func (n *Node) settle(ctx context.Context) error {
	n.mu.Lock()
	n.mu.ended = true
	n.mu.Unlock()
	if err := lifecycle.Wait(ctx, &n.working); err != nil {
		return fmt.Errorf("work given to Go has not returned: %w", err)
	}
	return nil
}

// errGoexit is what a function of the user ended with that called runtime.Goexit.
var errGoexit = errors.New("runtime.Goexit was called")

// shielded calls a function of the user in a goroutine of its own and turns a panic or Goexit into an error.
func shielded(ctx context.Context, f func(context.Context) error) error {
	done := make(chan error, 1)
	go func() {
		err := errGoexit
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
			done <- err
		}()
		err = f(ctx)
	}()
	return <-done
}

// prepare makes this life known to what runs at its stop.
func (n *Node) prepare(lives *lifecycle.Lives) error {
	lives.Attach(n.System)
	return n.OnStop(Ingress, "work", n.settle)
}
