package distributeddata

import (
	"context"
	"iter"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
)

// MapChange tells what became of one key of a ShardedMap.
type MapChange[K any, V crdt.Value[V]] struct {
	Key     K
	Value   V    // the empty value if the key is not there any more
	Old     V    // what was told before; the empty value if it was not there
	Removed bool // the key is not there any more
	// Err is set in a change that is about no key: of each entry that is there in another layout, see ShardedMap, and of
	// one that cannot be read. ErrInvalid, ErrType, ErrReentrant, ErrDeleted or that of a codec.
	Err error
}

// Changes yields each key that is there, and then each that has changed, gathered for Config.NotifyInterval, with the newest
// value: however often a key changed while the loop was busy, it is told of once. A round costs what has changed
// since the one before. In all else it is as Key.Changes. What one update changed in several shards is yielded together.
func (m ShardedMap[K, V]) Changes(ctx context.Context, r *Replicator) iter.Seq[*MapChange[K, V]] {
	return eachChange(ctx, r, m.entries, m.changes)
}

// changes yields what has changed in one shard.
func (m ShardedMap[K, V]) changes(c *Changed[crdt.ORMap[K, V]]) iter.Seq[*MapChange[K, V]] {
	return func(yield func(*MapChange[K, V]) bool) {
		if ok, err := m.entries.about(c); !ok {
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

// MapChanges tells an actor what has changed in one shard of a ShardedMap. They are found while they are looped over, by
// the actor.
type MapChanges[K any, V crdt.Value[V]] struct {
	all iter.Seq[*MapChange[K, V]]
}

// All yields the changes.
func (c *MapChanges[K, V]) All() iter.Seq[*MapChange[K, V]] { return c.all }

// Subscribe tells an actor of this member of what is there and of changes: each shard that has changed is one
// *MapChanges[K, V]. Everything else is as with Key.Subscribe.
func (m ShardedMap[K, V]) Subscribe(r *Replicator, to *actor.PID) (stop func()) {
	return subscribeTo(r, m.entries, to, func(c *Changed[crdt.ORMap[K, V]]) any { return &MapChanges[K, V]{m.changes(c)} })
}

// SetChange tells that an element of a ShardedSet was added or removed.
type SetChange[E any] struct {
	Element E
	Removed bool
	Err     error // as MapChange has it
}

// Changes yields each element that is there, and then each that is added or removed, as ShardedMap.Changes does.
func (s ShardedSet[E]) Changes(ctx context.Context, r *Replicator) iter.Seq[*SetChange[E]] {
	return eachChange(ctx, r, s.entries, s.changes)
}

func (s ShardedSet[E]) changes(c *Changed[crdt.ORSet[E]]) iter.Seq[*SetChange[E]] {
	return func(yield func(*SetChange[E]) bool) {
		if ok, err := s.entries.about(c); !ok {
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

// SetChanges tells an actor what has changed in one shard of a ShardedSet, as MapChanges does.
type SetChanges[E any] struct{ all iter.Seq[*SetChange[E]] }

// All yields the changes.
func (c *SetChanges[E]) All() iter.Seq[*SetChange[E]] { return c.all }

// Subscribe tells an actor of this member of what is there and of changes, as ShardedMap.Subscribe does.
func (s ShardedSet[E]) Subscribe(r *Replicator, to *actor.PID) (stop func()) {
	return subscribeTo(r, s.entries, to, func(c *Changed[crdt.ORSet[E]]) any { return &SetChanges[E]{s.changes(c)} })
}

// eachChange yields what has changed in each shard that has.
func eachChange[T crdt.Value[T], C any](ctx context.Context, r *Replicator, s sharded[T], of func(*Changed[T]) iter.Seq[C]) iter.Seq[C] {
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

// about reports whether the change of an entry tells of elements. If it does not, err says why: the entry is of
// another layout, or cannot be read; nil: there is nothing to tell.
func (s sharded[T]) about(c *Changed[T]) (elements bool, err error) {
	switch {
	case s.bad != nil || c.Key.id == s.family && c.Err != nil: // of the loop itself
		return false, c.Err
	case strings.HasPrefix(c.Key.id, s.own):
		return c.Err == nil, c.Err
	case c.Deleted:
		return false, nil
	}
	return false, s.differs(c.Key.id)
}
