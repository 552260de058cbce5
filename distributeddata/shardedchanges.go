package distributeddata

import (
	"context"
	"iter"
	"strings"

	"github.com/concord-go/concord/crdt"
)

// MapChange describes the change of one key of a ShardedMap.
type MapChange[K any, V crdt.Value[V]] struct {
	Key     K
	Value   V    // the empty value if the key is no longer present
	Old     V    // the value yielded or sent before; the empty value if the key was absent
	Removed bool // the key is no longer present
	// Err is set in a change that is not about a key: one for each entry in another layout (see
	// ShardedMap), and one for each entry that cannot be read. It is ErrInvalid, ErrType,
	// ErrDeleted or the error of a codec.
	Err error
}

// Changes yields each existing key, and then each key that has changed, batched over
// Config.NotifyInterval, with its newest value. To notify an actor, send it what the loop yields. A
// key that changed several times while the loop body ran is yielded once. A round costs as much as
// the changes since the previous one. Changes that one update made in several shards are yielded
// together. In all other respects it works like Key.Changes.
func (m ShardedMap[K, V]) Changes(ctx context.Context, r *Replicator) iter.Seq[*MapChange[K, V]] {
	return eachChange(ctx, r, m.entries(), m.changes)
}

// changes yields the changes in one shard.
func (m ShardedMap[K, V]) changes(c *Changed[crdt.ORMap[K, V]]) iter.Seq[*MapChange[K, V]] {
	return func(yield func(*MapChange[K, V]) bool) {
		if ok, err := m.entries().about(c); !ok {
			_ = err == nil || yield(&MapChange[K, V]{Err: err})
			return
		}
		changed, removed := c.Value.Diff(c.Old)
		for k, v := range changed {
			old, _ := c.Old.Get(k)
			if !yield(&MapChange[K, V]{Key: k, Value: v, Old: old}) {
				return
			}
		}
		for k := range removed {
			old, _ := c.Old.Get(k)
			if !yield(&MapChange[K, V]{Key: k, Old: old, Removed: true}) {
				return
			}
		}
	}
}

// SetChange describes the addition or removal of an element of a ShardedSet.
type SetChange[E any] struct {
	Element E
	Removed bool
	Err     error // as in MapChange
}

// Changes yields each existing element, and then each addition and removal, as ShardedMap.Changes
// does.
func (s ShardedSet[E]) Changes(ctx context.Context, r *Replicator) iter.Seq[*SetChange[E]] {
	return eachChange(ctx, r, s.entries(), s.changes)
}

func (s ShardedSet[E]) changes(c *Changed[crdt.ORSet[E]]) iter.Seq[*SetChange[E]] {
	return func(yield func(*SetChange[E]) bool) {
		if ok, err := s.entries().about(c); !ok {
			_ = err == nil || yield(&SetChange[E]{Err: err})
			return
		}
		added, removed := c.Value.Diff(c.Old)
		for e := range added {
			if !yield(&SetChange[E]{Element: e}) {
				return
			}
		}
		for e := range removed {
			if !yield(&SetChange[E]{Element: e, Removed: true}) {
				return
			}
		}
	}
}

// eachChange yields the changes in all shards that have changed.
func eachChange[T crdt.Value[T], C any](ctx context.Context, r *Replicator, s sharded[T],
	of func(*Changed[T]) iter.Seq[C]) iter.Seq[C] {
	return func(yield func(C) bool) {
		for c := range changes(ctx, r, s) {
			for one := range of(c) {
				if ctx.Err() != nil || !yield(one) {
					return
				}
			}
		}
	}
}

// about reports whether c, the change of an entry, describes elements. If not, err says that the
// entry is of another layout or cannot be read; err is nil if there is nothing to report.
func (s sharded[T]) about(c *Changed[T]) (elements bool, err error) {
	switch {
	case s.bad != nil || c.Key.id == s.family && c.Err != nil: // the loop itself failed
		return false, c.Err
	case strings.HasPrefix(c.Key.id, s.own):
		return c.Err == nil, c.Err
	case c.Deleted:
		return false, nil
	}
	return false, s.differs(c.Key.id)
}
