package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/extensions"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/wire"
)

// extensionID is allocated once per process: the registry has room for a hundred.
var extensionID = extensions.NextExtensionID()

// registering guards our slot in every system's extension registry, which is not synchronized.
var registering sync.Mutex

// run is the incarnation of the member of one actor system.
type run struct {
	mu struct {
		sync.Mutex
		begun bool // Start was called with a valid configuration
		over  bool // Shutdown has begun: nothing may start any more
	}
	tried chan struct{} // closed when StartMember has returned, or will not be called
	err   error         // error of StartMember; read after tried is closed
}

// ExtensionID implements extensions.Extension.
func (*run) ExtensionID() extensions.ExtensionID { return extensionID }

func runOf(system *actor.ActorSystem) *run {
	registering.Lock()
	defer registering.Unlock()
	if r, ok := system.Extensions.Get(extensionID).(*run); ok {
		return r
	}
	r := &run{tried: make(chan struct{})}
	system.Extensions.Register(r)
	return r
}

// Start starts the member and waits until it is ready: its own provider lists it, it is old enough
// to be compared with the other members, and every component created on its system is ready for
// use.
//
// Start waits until ctx ends, since a member that its provider never lists is never ready, or until
// the member is removed from its cluster; the error then also matches RemovalCause.
//
// After an error, including that of ctx, the member may be partly started: call Shutdown. The
// exceptions are those that match ErrInvalid, after which nothing was done. A cluster can be
// started only once.
func Start(ctx context.Context, c *cluster.Cluster) error {
	if err := checkCluster(c); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := runOf(c.ActorSystem)
	r.mu.Lock()
	if r.mu.begun || r.mu.over {
		r.mu.Unlock()
		return errStarted
	}
	r.mu.begun = true
	r.mu.Unlock()

	warn(c)
	ends.watch(c.ActorSystem)
	members := membership.Attach(c.ActorSystem)
	process.Bind(c.ActorSystem, c.Config.Name)
	go func() {
		defer close(r.tried)
		r.err = startMember(c)
	}()
	if err := r.listed(ctx, c, members); err != nil {
		return err
	}
	if err := process.Check(c.ActorSystem.Address()); err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	return ready(ctx, c.ActorSystem, members)
}

// ready waits until every component is ready for use, or the member is removed.
func ready(ctx context.Context, system *actor.ActorSystem, members *membership.Service) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-members.Removed():
			cancel(members.Cause())
		case <-ctx.Done():
		}
	}()
	err := lifecycle.Of(system).Start(ctx)
	switch {
	case err != nil && members.Cause() != nil:
		return fmt.Errorf("%w: %w", errNotReady, members.Cause())
	case err != nil:
		return fmt.Errorf("%w: %w", errNotReady, err)
	}
	return nil
}

// listed waits until the member is in its cluster. It does not wait for StartMember to return,
// because StartMember sleeps for a second after its work is done.
func (r *run) listed(ctx context.Context, c *cluster.Cluster,
	members *membership.Service) error {
	began := time.Now()
	ready := make(chan error, 1)
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { ready <- members.Ready(wait) }()
	tried := r.tried
	say := time.NewTimer(sayEvery)
	defer say.Stop()
	for {
		select {
		case <-say.C:
			c.ActorSystem.Logger().Warn("waiting to be listed", slog.String("address",
				c.ActorSystem.Address()), slog.Duration("for", sayEvery),
				slog.String("seen", seen(members, c.Config.ClusterProvider)))
		case <-tried:
			if r.err != nil {
				return r.err
			}
			tried = nil
		case err := <-ready:
			if err != nil && ctx.Err() != nil {
				return fmt.Errorf("%w after %v: %s: %w", errNotReady,
					time.Since(began).Round(time.Second), seen(members, c.Config.ClusterProvider),
					context.Cause(ctx))
			}
			return err
		}
	}
}

// startMember starts the member. It blocks for at least a second.
func startMember(c *cluster.Cluster) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrStart, p)
		}
	}()
	c.StartMember()
	return nil
}

// Removed returns a channel that is closed when this incarnation of the member has ended without
// being stopped; RemovalCause returns the cause. The member keeps working, but alone: Proto.Actor
// never readmits the same member id. Shut it down and begin another incarnation with a new actor
// system or a new process. Run does so automatically. Shutdown does not close the channel.
//
// Call Removed before the member starts, or after something that calls it: creating a component, or
// Start.
func Removed(system *actor.ActorSystem) <-chan struct{} {
	return membership.Attach(system).Removed()
}

// RemovalCause returns the cause for which Removed was closed, which matches ErrRemoved. It returns
// nil while the member is in its cluster.
func RemovalCause(system *actor.ActorSystem) error { return membership.Attach(system).Cause() }

func checkCluster(c *cluster.Cluster) error {
	if c == nil || c.ActorSystem == nil || c.Config == nil {
		return fmt.Errorf("%w: no cluster", ErrInvalid)
	}
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if n := len(c.Config.Name); n == 0 || n > wire.MaxName {
		bad("cluster name has %d bytes, it must have from 1 to %d", n, wire.MaxName)
	}
	if c.Config.RemoteConfig == nil {
		bad("cluster has no remote configuration: see Remote")
	}
	if c.Config.ClusterProvider == nil {
		bad("cluster has no provider")
	}
	if c.Config.IdentityLookup == nil {
		bad("cluster has no identity lookup: see Cluster")
	}
	for kind := range c.Config.Kinds {
		if r, ok := strings.CutPrefix(kind, membership.RolePrefix); ok {
			if err := checkRole(r); err != nil {
				errs = append(errs, err)
			}
		}
		if v, ok := strings.CutPrefix(kind, membership.VersionPrefix); ok {
			if err := checkAppVersion(v); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// warn logs settings that differ from the recommended ones.
func warn(c *cluster.Cluster) {
	log, rc := c.ActorSystem.Logger(), c.Config.RemoteConfig
	if rc.EndpointWriterQueueSize > 64*queueSize {
		log.Warn("remoting allocates a large queue for every peer",
			slog.Int("size", rc.EndpointWriterQueueSize))
	}
	if len(rc.ServerOptions) == 0 {
		log.Warn("remoting is not guarded: any peer can crash this process",
			slog.String("instead", "node.Remote"))
	}
	if c.Config.GossipInterval < never {
		log.Warn("gossip has data races and is not needed", slog.String("instead", "node.Cluster"))
	}
}
