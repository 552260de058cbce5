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

// With Config.External, users write homes of shards into a replicated map, which the coordinator reads.
type external = crdt.LWWMap[int, string]

func externalKey(typ string) distributeddata.Key[external] {
	return distributeddata.NewKey("concord-sharding-"+typ+"/external", external{})
}

// Allocate asks that shards be at members, which are named by id or address, and keeps that until it is changed; an empty
// name takes it back. It needs Config.External, and may be called at any member, proxies included. When it returns nil, a
// majority of the replicas knows, and the coordinator will; the shards move as for a better balance, see Config.MaxMoves
// and Config.StableAfter, and Status shows when they have. A name counts while that member can host. While it cannot, and
// for one that does not exist, the shard is assigned as if it had none, so that it is served.
//
// Homes of one call are seen together. Of concurrent calls for a shard the later one counts, by the clocks of members.
//
// The error is ErrInvalid, naming every entry that cannot be used; ErrClosed after Close and between two lives; and
// ErrUnknown, with the cause, if a majority was not reached: then it may count or not, and may be repeated.
func (r *region) Allocate(ctx context.Context, homes map[int]string) error {
	l, err := r.external()
	if err == nil {
		err = checkHomes(homes, r.shards)
	}
	if err != nil {
		return fmt.Errorf("sharding %q: %w", r.typ, err)
	}
	homes = maps.Clone(homes) // the update may run after this call has returned
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

// Allocations returns what Allocate has asked for, as a majority of the replicas knows it. The errors are those of Allocate.
func (r *region) Allocations(ctx context.Context) (map[int]string, error) {
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

func (r *region) external() (*life, error) {
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
			bad = append(bad, fmt.Errorf("%w: shard %d, it must be from 0 to %d", ErrInvalid, s, shards-1))
		case len(name) > wire.MaxName:
			bad = append(bad, fmt.Errorf("%w: member of shard %d has %d bytes, at most %d", ErrInvalid, s, len(name), wire.MaxName))
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

// subscribeExternal tells the coordinator of the homes that users wish, now and when they change.
func (l *life) subscribeExternal(to *actor.PID) {
	externalKey(l.cfg.Type).Subscribe(l.data, to, func(c *distributeddata.Changed[external]) any {
		if c.Err != nil {
			l.log.Error("homes that users wish cannot be read", slog.Any("error", c.Err))
			return nil
		}
		return &chosen{Homes: homesOf(c.Value, l.cfg.Shards)}
	})
}

// readExternal returns what the replica of this member has.
func (l *life) readExternal() core.Wishes {
	m, _ := externalKey(l.cfg.Type).Of(l.data.Snapshot())
	return core.Wishes{Homes: homesOf(m, l.cfg.Shards)}
}
