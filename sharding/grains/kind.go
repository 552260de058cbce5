package grains

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/sharding"
)

// kind is a kind of grains that this member can run.
type kind struct {
	props *actor.Props
	err   error // why it is refused
}

// kindsOf returns the kinds of a cluster, and the problems of those that are refused.
func kindsOf(c *cluster.Cluster, names []string) (map[string]*kind, error) {
	kinds := map[string]*kind{}
	for _, name := range names {
		if k, ok := c.TryGetClusterKind(name); ok {
			kinds[name] = newKind(k)
		}
	}
	for name, k := range c.Config.Kinds {
		if kinds[name] == nil {
			kinds[name] = newKind(k.Build(c))
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		errs = append(errs, kinds[name].err)
	}
	return kinds, errors.Join(errs...)
}

func newKind(k *cluster.ActivatedKind) *kind {
	if k.Strategy != nil {
		return &kind{err: fmt.Errorf("%w: grains: kind %q has a member strategy, %T, which does not apply: the home of a shard decides where a grain runs, see Sharding.Strategy", sharding.ErrInvalid, k.Kind, k.Strategy)}
	}
	count := func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, m *actor.MessageEnvelope) {
			switch m.Message.(type) {
			case *actor.Started:
				k.Inc()
			case *actor.Stopped, *actor.Restarting:
				k.Dec()
			}
			next(ctx, m)
		}
	}
	return &kind{props: k.Props.Clone(actor.WithReceiverMiddleware(count))}
}

// blueprint returns how the grain of an entity is spawned.
func (l *lookup) blueprint(e sharding.Entity) (*actor.Props, func(actor.Context), error) {
	of, err := identityOf(e.ID)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	k := l.mu.kinds[of.Kind]
	l.mu.Unlock()
	switch {
	case k == nil:
		return nil, nil, fmt.Errorf("%w: grains: this member does not have kind %q: all members that run grains must have all kinds", sharding.ErrInvalid, of.Kind)
	case k.err != nil:
		return nil, nil, k.err
	}
	return k.props, func(ctx actor.Context) { cluster.SetClusterIdentity(ctx, of) }, nil
}
