package sharding

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/wire"
	"github.com/concord-go/concord/sharding/internal/core"
)

// With Config.External, applications write the homes of shards to a replicated map, which the
// coordinator reads.
type external = crdt.LWWMap[int, string]

func externalKey(typ string) distributeddata.Key[external] {
	return distributeddata.NewKey("concord-sharding-"+typ+"/external", external{})
}

// Allocate requests that shards be on the given members, named by id or address. The request stays
// in force until it is changed; an empty name withdraws it. It requires Config.External, and may be
// called on any member, including proxies. When it returns nil, a majority of the replicas has
// stored the request, and the coordinator will see it. The shards then move as for a better
// balance, see Config.MaxMoves and Config.StableAfter; Status shows when they have moved. A request
// applies while the named member can host. Otherwise, and if no such member exists, the shard is
// assigned as if there were no request, so that it is served.
//
// The homes of one call take effect together. Of concurrent calls for a shard the later one wins,
// according to the clocks of the members.
//
// The error matches ErrInvalid and lists every invalid entry; or ErrClosed after Close and while
// the member rejoins; or ErrUnknown, with the cause, if no majority was reached: the request may or
// may not take effect, and may be repeated.
func (r *region) Allocate(ctx context.Context, homes map[int]string) error {
	if err := r.made(); err != nil {
		return err
	}
	l, err := r.external()
	if err == nil {
		err = checkHomes(homes, r.shards)
	}
	if err != nil {
		return fmt.Errorf("sharding %q: %w", r.typ, err)
	}
	homes = maps.Clone(homes) // the update may outlive this call
	_, err = externalKey(r.typ).Update(ctx, l.data, func(w *crdt.Writer, m *external) error {
		for s := range r.shards {
			switch name, ok := homes[s]; {
			case ok && name == "":
				m.Remove(w, s)
			case ok:
				m.Set(w, s, name)
			}
		}
		return nil
	}, distributeddata.Majority)
	if err != nil {
		return fmt.Errorf("sharding %q: %w: %w", r.typ, ErrUnknown, err)
	}
	return nil
}

// Allocations returns the current requests of Allocate, read from a majority of the replicas. The
// errors are those of Allocate.
func (r *region) Allocations(ctx context.Context) (map[int]string, error) {
	if err := r.made(); err != nil {
		return nil, err
	}
	l, err := r.external()
	if err != nil {
		return nil, fmt.Errorf("sharding %q: %w", r.typ, err)
	}
	m, err := externalKey(r.typ).Get(ctx, l.data, distributeddata.Majority)
	if err != nil && !isNotFound(err) {
		return nil, fmt.Errorf("sharding %q: %w: %w", r.typ, ErrUnknown, err)
	}
	return homesOf(m, r.shards), nil
}

func (r *region) external() (*binding, error) {
	l := r.present.Load()
	switch {
	case l == nil:
		return nil, ErrClosed
	case !l.cfg.External:
		return nil, fmt.Errorf("%w: External is not set", ErrInvalid)
	}
	return l, nil
}

func checkHomes(homes map[int]string, shards int) error {
	var bad []error
	for _, s := range slices.Sorted(maps.Keys(homes)) {
		switch name := homes[s]; {
		case s < 0 || s >= shards:
			bad = append(bad, fmt.Errorf("%w: shard %d, it must be from 0 to %d", ErrInvalid, s,
				shards-1))
		case len(name) > wire.MaxName:
			bad = append(bad, fmt.Errorf("%w: member of shard %d has %d bytes, at most %d",
				ErrInvalid, s, len(name), wire.MaxName))
		}
	}
	return errors.Join(bad...)
}

func homesOf(m external, shards int) map[int]string {
	homes := map[int]string{}
	for s, name := range m.All() {
		if s >= 0 && s < shards {
			homes[s] = name
		}
	}
	return homes
}

// subscribeExternal sends the coordinator the requested homes, now and whenever they change.
func (l *binding) subscribeExternal(to *actor.PID) {
	externalKey(l.cfg.Type).Subscribe(l.data, to, func(c *distributeddata.Changed[external]) any {
		if c.Err != nil {
			l.log.Error("requested homes of shards cannot be read: the last ones apply", slog.Any("error", c.Err))
			return nil
		}
		return &chosen{Homes: homesOf(c.Value, l.cfg.Shards)}
	})
}

// readExternal returns the requested homes in the replica of this member.
func (l *binding) readExternal() core.Overrides {
	m, _ := externalKey(l.cfg.Type).Of(l.data.Snapshot())
	return core.Overrides{Homes: homesOf(m, l.cfg.Shards)}
}
