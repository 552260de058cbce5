package node

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

// Shutdown stops sharding, then singletons, replicators and the exchange with other members, then
// the cluster. It returns all errors. If ctx has a deadline, each step has its share of the
// remaining time; Shutdown abandons a step that exceeds its share and begins the next one. It
// always begins to stop the cluster, and continues in the background if ctx ends first. At the end
// it stops every actor of the system that still runs.
//
// A second call, even a concurrent one, waits for the first and returns the same result. A member
// that was never started, or whose start failed, is shut down as far as it got.
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
