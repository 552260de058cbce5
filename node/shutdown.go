package node

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

// Phase is a step of Shutdown.
type Phase = lifecycle.Phase

// Phases of Shutdown, in this order. What is registered in one phase runs side by side.
const (
	Ingress    = lifecycle.Ingress
	Sharding   = lifecycle.Sharding
	Singleton  = lifecycle.Singleton
	Leases     = lifecycle.Leases
	Replicator = lifecycle.Replicator
	Session    = lifecycle.Session
)

// OnStop registers stop to be run once by Shutdown. Components of Concord do so themselves; this is for what
// stands beside them. cancel takes it back. It is an error to register when Shutdown has begun.
func OnStop(system *actor.ActorSystem, p Phase, name string, stop func(context.Context) error) (cancel func(), err error) {
	return lifecycle.OnStop(system, p, name, stop)
}

// Shutdown stops what is registered with OnStop, in order, then the exchange with other members, then
// the cluster, and returns every problem. If ctx has a deadline, each phase has its share of what is
// left; a phase that overruns is given up, and the next one runs. Stopping the cluster is always begun, and ends in
// the background when ctx ends first. At the end every actor of the system that still runs is stopped.
//
// Calling it again, also at the same time, waits for the first call and returns the same. A member
// that was not started, or not successfully, is shut down as far as it got.
func Shutdown(ctx context.Context, c *cluster.Cluster) error {
	if c == nil || c.ActorSystem == nil {
		return fmt.Errorf("%w: no cluster", ErrInvalid)
	}
	r := runOf(c.ActorSystem)
	r.mu.Lock()
	first := !r.mu.over
	r.mu.over = true
	begun := r.mu.begun
	r.mu.Unlock()
	if first && !begun {
		close(r.tried) // StartMember will not be called
	}
	return lifecycle.Of(c.ActorSystem).Stop(ctx, func(ctx context.Context) error {
		members := membership.Attach(c.ActorSystem)
		members.Stop()
		done := make(chan error, 1)
		go func() { done <- leave(c, r, begun, members) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return fmt.Errorf("cluster still stopping: %w", context.Cause(ctx))
		}
	})
}
