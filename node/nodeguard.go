package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/timer"
)

// atGuard is the guard's key at the gate, which is shut while the guard lease is not held.
const atGuard = "guard"

const (
	// guardRetry is the pause after an acquire that failed while the guard was still running.
	guardRetry = time.Second
	// guardLook is how often the guard polls a grant that is about to expire.
	guardLook = 250 * time.Millisecond
)

// startGuard holds a lease for one incarnation of a member, and keeps the gate shut while it is not
// held: from the start, once failed renewals leave less than a third of the TTL, and after a loss.
// Guarded work then stops before its own leases end. The gate opens when the lease is held or
// renewed again.
//
// Each member has its own lease, so no two members may use the same name. As long as another owner
// holds the lease, no guarded work runs on this member.
//
// stop shuts the gate and waits until the lease is released. Call it after guarded work has been
// handed over and before the session is closed.
func startGuard(system *actor.ActorSystem, session *coordination.Session,
	name string) (stop func(context.Context) error, err error) {
	if name == "" {
		return nil, fmt.Errorf("%w: Guard, the name of the member's lease, must be set", ErrInvalid)
	}
	g := &nodeGuard{
		lease: session.Lease(name), gate: gate.Of(system), clock: timer.ClockOf(system),
		log:  system.Logger(),
		done: make(chan struct{}),
	}
	g.gate.Shut(atGuard, "the member does not hold its guard lease yet")
	ctx, cancel := context.WithCancel(context.Background())
	go g.run(ctx)
	return func(ctx context.Context) error {
		cancel()
		select {
		case <-g.done:
			return g.release(ctx)
		case <-ctx.Done():
			return fmt.Errorf("guard lease %q: %w", name, context.Cause(ctx))
		}
	}, nil
}

// nodeGuard is the guard of one incarnation.
type nodeGuard struct {
	lease *coordination.Lease
	gate  *gate.Gate
	clock timer.Clock
	log   *slog.Logger
	done  chan struct{} // closed when run has returned

	grant *coordination.Grant // the last one, released after done is closed
}

// run acquires and holds the lease repeatedly until ctx ends.
func (g *nodeGuard) run(ctx context.Context) {
	defer close(g.done)
	for ctx.Err() == nil {
		grant, err := g.lease.Acquire(ctx)
		switch {
		case err == nil:
			g.grant = grant
			g.hold(ctx, grant)
		case errors.Is(err, coordination.ErrClosed):
			g.shut("the lease session is closed")
			return
		case ctx.Err() == nil:
			g.log.Warn("guard lease not acquired: no guarded work runs on this member until it is",
				slog.Any("error", err))
			g.pause(ctx, guardRetry)
		}
	}
	g.gate.Shut(atGuard, "the member leaves the cluster")
}

// hold opens and shuts the gate according to the state of the grant, until the grant or ctx ends.
func (g *nodeGuard) hold(ctx context.Context, grant *coordination.Grant) {
	near := make(chan struct{}, 1)
	defer grant.OnNearExpiry(func(time.Duration) {
		select {
		case near <- struct{}{}:
		default:
		}
	})()
	g.open("guard lease held")
	for {
		select {
		case <-near:
			g.shut("the guard lease is about to expire: the lease store does not answer")
			if g.renewed(ctx, grant) {
				g.open("guard lease renewed")
			}
		case <-grant.Context().Done():
			g.shut("the guard lease is lost")
			_ = g.release(ctx) // guarded work has its own leases
			return
		case <-ctx.Done():
			return
		}
	}
}

// renewed waits until the grant has been extended, and returns false if it ends instead.
func (g *nodeGuard) renewed(ctx context.Context, grant *coordination.Grant) bool {
	for least := grant.Remaining(); ; least = min(least, grant.Remaining()) {
		g.pause(ctx, guardLook)
		switch {
		case ctx.Err() != nil || grant.Check() != nil:
			return false
		case grant.Remaining() > least:
			return true
		}
	}
}

// pause waits on the clock of the member until d has passed or ctx ends.
func (g *nodeGuard) pause(ctx context.Context, d time.Duration) {
	over := make(chan struct{})
	stop := g.clock.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

func (g *nodeGuard) open(what string) {
	g.log.Info("guarded work may run here", slog.String("lease", g.lease.Name()),
		slog.String("because", what))
	g.gate.Let(atGuard)
}

// shut shuts the gate. The session logs the fault.
func (g *nodeGuard) shut(why string) {
	g.log.Info("guarded work must not run here", slog.String("lease", g.lease.Name()),
		slog.String("why", why))
	g.gate.Shut(atGuard, why)
}

// release releases the last grant. It is called by run, or after run has returned.
func (g *nodeGuard) release(ctx context.Context) error {
	if g.grant == nil {
		return nil
	}
	return g.grant.Release(ctx)
}
