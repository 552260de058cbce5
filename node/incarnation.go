package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/internal/leases"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/node/internal/arbiter"
)

// live runs one incarnation of the member. again reports whether another incarnation should follow;
// it follows at once if err is nil.
func (r *runner) live(ctx context.Context) (again bool, err error) {
	r.cfg.Health.set(stateStarting, nil, nil)
	n, err := r.make(ctx)
	if err != nil {
		return r.incarnation > 1 && ctx.Err() == nil, err
	}
	defer n.end(nil)
	defer func() { r.counted = cmp.Or(int(n.counted.Load()), r.counted) }()
	if err := r.registered(n); err != nil {
		n.end(err)
		stopped := r.stop(n, true)
		if ctx.Err() != nil && !errors.Is(err, ErrStop) {
			return false, stopped // asked to stop while register ran
		}
		return false, errors.Join(err, stopped)
	}
	if err := r.start(n); err != nil {
		n.end(err)
		if r.ended.IsZero() {
			r.ended = time.Now()
		}
		again := (r.incarnation > 1 || errors.Is(err, ErrRemoved)) && ctx.Err() == nil
		stopped := r.stop(n, !again) // the session outlives all but the last incarnation
		if ctx.Err() != nil {
			return false, stopped // asked to stop during the start
		}
		return again, errors.Join(err, stopped)
	}
	r.keepPort(n)
	r.cfg.Logger.Info("member is up", slog.String("cluster", r.cfg.Cluster),
		slog.String("address", n.System.Address()),
		slog.String("member", membership.Attach(n.System).View().Self.ID),
		slog.Int("incarnation", r.incarnation), r.away())
	r.cfg.Health.up(n)
	n.begin()
	return r.serve(ctx, n)
}

// away says how long the member was not up after an incarnation.
func (r *runner) away() slog.Attr {
	if r.ended.IsZero() {
		return slog.Attr{}
	}
	return slog.Duration("after", time.Since(r.ended).Round(time.Millisecond))
}

// serve waits for the end of the incarnation, then stops it.
func (r *runner) serve(ctx context.Context, n *Node) (again bool, err error) {
	select {
	case <-ctx.Done():
		n.end(context.Cause(ctx))
		r.cfg.Logger.Info("member stops", slog.Any("cause", context.Cause(ctx)))
		r.cfg.Health.set(stateStopping, n.System, nil)
		return false, r.stop(n, true)
	case <-n.failed:
		n.end(n.failure())
		r.cfg.Health.set(stateStopping, n.System, nil)
		return false, errors.Join(n.failure(), r.stop(n, true))
	case <-Removed(n.System):
	}
	cause := RemovalCause(n.System)
	r.ended = time.Now()
	n.end(cause)
	r.cfg.Health.over(n.System, cause)
	r.cfg.Logger.Info("incarnation ends", slog.Int("incarnation", r.incarnation),
		slog.Any("cause", cause), slog.String("then", r.cfg.OnSplit.String()))
	stopped := r.stop(n, r.cfg.OnSplit != Rejoin)
	if stopped != nil { // not a reason to stay away: unreleased leases expire
		r.cfg.Logger.Error("member not stopped in order: its leases may be free only after their TTL",
			slog.Int("incarnation", r.incarnation), slog.Any("error", stopped))
	}
	switch r.cfg.OnSplit {
	case Reexec:
		// returns only with an error
		return false, errors.Join(ErrSplit, cause, r.close(nil), reexec())
	case Exit:
		return false, errors.Join(ErrSplit, cause, stopped)
	}
	return ctx.Err() == nil, nil
}

// make builds the actor system and the cluster of an incarnation.
func (r *runner) make(ctx context.Context) (*Node, error) {
	rc, err := Remote(r.cfg.Remote, r.cfg.Remoting...)
	if err != nil {
		return nil, err
	}
	var provider cluster.ClusterProvider
	err = r.within(ctx, "RunConfig.Provider", func(context.Context) (err error) {
		provider, err = r.cfg.Provider()
		return err
	})
	if err == nil && provider == nil {
		err = errors.New("the Provider function returned nil")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: provider: %w", ErrStart, err)
	}
	logger := quietly(r.cfg.Logger)
	system := actor.NewActorSystem(append([]actor.ConfigOption{
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }),
	}, r.cfg.System...)...)
	announced := []cluster.ConfigOption{Roles(r.cfg.Remote.Roles...),
		AppVersion(r.cfg.Remote.AppVersion)}
	options := append(announced, r.cfg.Options...)
	n := &Node{
		System: system, Cluster: cluster.New(system, Cluster(r.cfg.Cluster, provider, rc,
			options...)),
		Session: r.session, Incarnation: r.incarnation, store: r.store, failed: make(chan struct{}),
	}
	membership.Attach(system).Tune(membership.Tuning{Patience: r.cfg.Patience,
		Incarnations: r.pace.lately(time.Now())})
	n.ctx, n.end = context.WithCancelCause(ctx)
	r.startWatch(n)
	return n, n.prepare(r.incarnations)
}

// registered calls the user's register function, which creates the components. In the last
// incarnation it makes the session close after them.
func (r *runner) registered(n *Node) error {
	err := n.onStop(lifecycle.Session, "session", func(ctx context.Context) error {
		if r.session == nil || !n.last() {
			return nil
		}
		return r.session.Close(ctx)
	})
	if err != nil {
		return err
	}
	if r.session != nil {
		lifecycle.OnCheck(n.System, "session", func() error {
			return leases.Held.Broken(r.session)
		})
	}
	if err := r.guard(n); err != nil {
		return err
	}
	err = r.within(n.ctx, "register", func(context.Context) error {
		if err := r.register(n); err != nil {
			return err
		}
		return r.lookup(n)
	})
	if err != nil {
		return fmt.Errorf("node: register: %w", err)
	}
	return nil
}

// lookup replaces the identity lookup by the one that the application creates.
func (r *runner) lookup(n *Node) error {
	if r.cfg.Lookup == nil {
		return nil
	}
	lookup, err := r.cfg.Lookup(n)
	if err == nil && lookup == nil {
		err = errors.New("the function returned nil")
	}
	if err != nil {
		return fmt.Errorf("identity lookup: %w", err)
	}
	n.Cluster.Config.IdentityLookup = lookup
	return nil
}

// guard starts what decides whether this incarnation may host singletons and shards.
func (r *runner) guard(n *Node) error {
	if r.cfg.Guard != "" {
		stop, err := startGuard(n.System, r.session, r.cfg.Guard)
		if err != nil {
			return err
		}
		if err := n.onStop(lifecycle.Leases, "guard", stop); err != nil {
			return err
		}
	}
	if !r.majorityHosts() {
		return nil
	}
	cfg := arbiter.Config{Members: max(r.cfg.MinMembers, 1), Later: n.Incarnation > 1}
	if r.counted > 0 { // a majority of those of the former incarnation
		cfg.Members = r.counted/2 + 1
	}
	stop := startArbiter(n.System, r.session, r.cfg.Cluster, cfg, n.fail, &n.counted)
	return n.onStop(lifecycle.Leases, "majority", stop)
}

// majorityHosts reports whether only the side of a partition that has a majority hosts.
func (r *runner) majorityHosts() bool {
	return r.session != nil && !r.cfg.HostWithoutMajority && !r.cfg.Session.Forever
}

// start starts the member and waits until it is ready.
func (r *runner) start(n *Node) error {
	if r.incarnation == 1 {
		lifecycle.OnStart(n.System, "members", func(ctx context.Context) error {
			return awaitMembers(ctx, n.Cluster, max(r.cfg.MinMembers, 1))
		})
	}
	ctx, cancel := context.WithTimeout(n.ctx, r.cfg.StartTimeout)
	defer cancel()
	return Start(ctx, n.Cluster)
}

// keepPort makes the next incarnation listen on the port of this one.
func (r *runner) keepPort(n *Node) {
	if _, port, err := n.System.GetHostPort(); err == nil && r.cfg.Remote.Port == 0 &&
		r.cfg.Remote.Advertised == "" {
		r.cfg.Remote.Port = port
	}
}

// stop stops an incarnation in order, within StopTimeout. After the last incarnation, nothing of
// the process is left in the cluster.
func (r *runner) stop(n *Node, last bool) error {
	if last {
		n.setLast()
		r.incarnations.Last()
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.StopTimeout)
	defer cancel()
	if err := Shutdown(ctx, n.Cluster); err != nil {
		return fmt.Errorf("%w: %w", ErrStop, err)
	}
	return nil
}
