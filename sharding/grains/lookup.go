package grains

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/internal/props"
)

// lookup is a cluster.IdentityLookup. Its methods may be called from any goroutine.
type lookup struct {
	system  *actor.ActorSystem
	timeout time.Duration
	region  *sharding.Region[proto.Message]
	hosts   bool
	failed  bugs.Sparse // lines of the log about grains that were not found
	missed  metric.Int64Counter
	typ     string

	mu struct {
		sync.Mutex
		cluster *cluster.Cluster // nil: Setup has not been called
		kinds   map[string]*kind
		client  *client    // nil: this is a member
		ingress *actor.PID // where clients ask; nil: none
		rivals  *rivals    // nil: this is a client
	}
}

// New returns the identity lookup of one member, which finds and starts grains in shards. Call it
// for each actor system, before the member starts, and pass the result to cluster.Configure, or
// return it from node.RunConfig.Lookup.
//
// The errors match sharding.ErrInvalid, or are those of coordination.Open and distributeddata.New.
func New(system *actor.ActorSystem, cfg Config) (cluster.IdentityLookup, error) {
	if system == nil {
		return nil, fmt.Errorf("%w: grains: no actor system", sharding.ErrInvalid)
	}
	if err := cfg.validate(lifecycle.MinMembers(system)); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	missed, err := counter(cfg.Sharding.Meters)
	if err != nil {
		return nil, fmt.Errorf("grains: %w", err)
	}
	l := &lookup{system: system, timeout: cfg.Timeout, missed: missed, typ: cfg.Sharding.Type}
	if err := l.begin(cfg); err != nil {
		return nil, err
	}
	return l, nil
}

// begin creates what the Config does not have, and then the region.
func (l *lookup) begin(cfg Config) (err error) {
	session, data := cfg.Session, cfg.Replicator
	if cfg.Store != nil {
		if session, err = l.open(cfg.Store); err != nil {
			return err
		}
	}
	if data == nil {
		data, err = distributeddata.New(l.system, distributeddata.Config{
			Name: cfg.Sharding.Type, MinMembers: cfg.MinMembers})
		if err != nil {
			return fmt.Errorf("grains: %w", err)
		}
	}
	l.hosts = session != nil
	if !l.hosts {
		l.region, err = sharding.NewProxy[proto.Message](l.system, data, cfg.Sharding)
		return err
	}
	region, err := props.Hosted.NewRegion(l.system, session, data, cfg.Sharding, l.blueprint)
	l.region, _ = region.(*sharding.Region[proto.Message])
	return err
}

// open opens a session that ends with the member.
func (l *lookup) open(store coordination.Store) (*coordination.Session, error) {
	session, err := coordination.Open(store, coordination.Config{Logger: l.system.Logger()})
	if err != nil {
		return nil, fmt.Errorf("grains: %w", err)
	}
	_, err = lifecycle.OnStop(l.system, lifecycle.Session, "grains", session.Close)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("grains: %w", err), session.Close(context.Background()))
	}
	return session, nil
}

// Region returns the region of the grains of a lookup that New has made, for its status and for the
// cockpit, and nil for any other lookup. The id of an entity is the kind of the grain, a slash and
// its identity.
func Region(of cluster.IdentityLookup) *sharding.Region[proto.Message] {
	l, ok := of.(*lookup)
	if !ok {
		return nil
	}
	return l.region
}

// Get returns the PID of a grain, which it starts if it does not run. It waits while the shard of
// the grain has no host, at most for Config.Timeout, and then returns nil and logs the reason. The
// PID is good until the grain ends: then a request to it is answered with actor.ErrDeadLetter, and
// cluster.Request calls Get again.
func (l *lookup) Get(of *cluster.ClusterIdentity) *actor.PID {
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
	defer cancel()
	pid, err := l.find(ctx, of)
	if err == nil {
		return pid
	}
	l.miss(1)
	if unlogged, due := l.failed.Due(timer.ClockOf(l.system).Now(), quiet); due {
		l.system.Logger().Warn("grain not found", slog.String("kind", of.GetKind()),
			slog.String("identity", of.GetIdentity()), slog.Any("error", err),
			slog.Int("unlogged", unlogged))
	}
	return nil
}

// quiet is how long the line about a grain that was not found is not repeated.
const quiet = 10 * time.Second

func (l *lookup) find(ctx context.Context, of *cluster.ClusterIdentity) (*actor.PID, error) {
	id, err := entityID(of)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	c, k, r := l.mu.client, l.mu.kinds[of.Kind], l.mu.rivals
	l.mu.Unlock()
	switch {
	case c != nil:
		return c.find(ctx, of)
	case k != nil && k.err != nil:
		return nil, k.err
	case r != nil:
		if err := r.check(); err != nil {
			return nil, err
		}
	}
	return props.Hosted.Activate(ctx, l.region.Ref(id))
}

// RemovePid removes a PID from the cache of this member, if it is the one of the grain there. It is
// never necessary: a cached PID whose grain has ended is found out by the next request.
func (l *lookup) RemovePid(of *cluster.ClusterIdentity, pid *actor.PID) {
	l.mu.Lock()
	c := l.mu.cluster
	l.mu.Unlock()
	if c != nil && pid != nil {
		c.PidCache.RemoveByValue(of.GetIdentity(), of.GetKind(), pid)
	}
}

// Setup is called by Proto.Actor when the member, or the client, starts.
func (l *lookup) Setup(c *cluster.Cluster, kinds []string, isClient bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.cluster != nil {
		return
	}
	l.mu.cluster = c
	l.miss(0) // so that the first one is an increase
	if isClient {
		l.mu.client = newClient(l.system)
		return
	}
	var err error
	l.mu.kinds, err = kindsOf(c, kinds)
	if err != nil {
		l.system.Logger().Error("kinds of grains refused", slog.Any("error", err))
		lifecycle.OnStart(l.system, "grains", func(context.Context) error { return err })
	}
	if l.hosts && lifecycle.IncarnationsOf(l.system) == nil {
		l.system.Logger().Warn("grains without node.Run: a member that is dropped stays alone until its process is restarted, and each side of a partition with access to the lease store may host")
	}
	r := newRivals(l.system, l.mu.kinds)
	if _, err := lifecycle.OnStop(l.system, lifecycle.Session, "grains", func(
		ctx context.Context) error {
		r.close()
		l.linger(ctx)
		return nil
	}); err != nil {
		r.close() // the member is stopping
	}
	l.mu.rivals = r
	lifecycle.WhileStarting(l.system, "grains", r.none)
	l.mu.ingress, _ = l.system.ProcessRegistry.Add(
		&ingress{l, make(chan struct{}, maxAsking)}, ingressName)
}

// lingering is how long a member that leaves answers requests to the grains that were there: their
// callers have the PIDs in their caches, and find the next activations when they get dead letters.
const lingering = 200 * time.Millisecond

// linger waits after the shards have been given to other members.
func (l *lookup) linger(ctx context.Context) {
	if !l.hosts {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lingering)
	defer cancel()
	<-ctx.Done()
}

// stopWithin bounds Shutdown.
const stopWithin = 10 * time.Second

// Shutdown is called by Proto.Actor when the member has left the list of members. It gives the
// shards to other members, and ends what New has begun. After node.Shutdown or node.Run, which do
// that before the member leaves, it has nothing to do.
func (l *lookup) Shutdown() {
	l.mu.Lock()
	c, ingress := l.mu.client, l.mu.ingress
	l.mu.Unlock()
	if c != nil {
		c.close()
	}
	if ingress != nil {
		l.system.ProcessRegistry.Remove(ingress)
	}
	if hooks := lifecycle.Of(l.system); !hooks.Stopping() {
		l.stop(hooks)
	}
}

func (l *lookup) stop(hooks *lifecycle.Hooks) {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	err := hooks.Stop(ctx, func(ctx context.Context) error {
		members := membership.Attach(l.system)
		members.Stop()
		select {
		case <-members.Stopped():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		l.system.Logger().Error("grains not stopped in order", slog.Any("error", err))
	}
}
