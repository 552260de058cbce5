package distributeddata

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/hosted"
)

// ShardedMap is one map spread over a number of entries, its shards, by a hash of the keys. Use it
// for a million elements and more, where a single entry would reach the bounds of a value and a
// member that is far behind would have to be sent all of it. An update costs as much as an update
// of one shard. Keys and values are those of crdt.ORMap; a key is present while its value holds
// anything.
//
//	var Users = distributeddata.NewShardedMap("users", 1024, crdt.ORMap[string, crdt.LWWRegister[string]]{})
//
//	_, err := Users.Update(ctx, dd, "ada", func(w *crdt.Writer, name *crdt.LWWRegister[string]) error {
//		name.Set(w, "Ada Lovelace")
//		return nil
//	}, distributeddata.Majority)
//	name, err := Users.Get(ctx, dd, "ada") // local, never waits
//
// Levels, errors and the restrictions on modify functions are those of Key. To change several
// elements together, use UpdateIn and RemoveIn in Atomically.
//
// The number of shards is fixed: it is part of the names of the shards, as are the types of keys
// and values. If this replica holds entries of the same collection written with another number of
// shards, every operation except Clear returns ErrInvalid; with another type, ErrType. The error
// names both layouts, and their contents never mix. Two programs that use different layouts at the
// same time detect this once they have heard of each other.
//
// Maps are cheap values; declare them as package variables. Every operation of a map that
// NewShardedMap has not made returns ErrInvalid. The entry "users#*" in Config.Durable
// makes the collection "users" durable.
type ShardedMap[K any, V crdt.Value[V]] struct {
	made   sharded[crdt.ORMap[K, V]]
	append func(dst []byte, key K) ([]byte, error)
}

// NewShardedMap returns the map with the given name: valid UTF-8 of 1 to 256 bytes, without # and
// *. shards is from 1 to 65,536; a good number is one shard per 10,000 elements expected at
// most, since an empty shard costs little. With invalid arguments every operation returns
// ErrInvalid. empty supplies the codecs, as in NewKey.
func NewShardedMap[K any, V crdt.Value[V]](name string, shards int,
	empty crdt.ORMap[K, V]) ShardedMap[K, V] {
	return ShardedMap[K, V]{sharded[crdt.ORMap[K, V]]{
		newLayout(name, hosted.TypeName(empty), shards), &empty}, hosted.Encoder[K](&empty)}
}

func (m ShardedMap[K, V]) entries() sharded[crdt.ORMap[K, V]] { return m.made.orInvalid() }

func (m ShardedMap[K, V]) encode(key K) func([]byte) ([]byte, error) {
	return func(dst []byte) ([]byte, error) { return m.append(dst, key) }
}

// Get returns the value at key, or ErrNotFound. The levels are those of Key.Get, applied to the
// whole map.
func (m ShardedMap[K, V]) Get(ctx context.Context, r *Replicator, key K, at ...Consistency) (v V,
	err error) {
	all, err := m.entries().get(ctx, r, m.encode(key), at)
	if err != nil {
		return v, err
	}
	v, ok, err := valueOf(all, key)
	if err == nil && !ok {
		err = fmt.Errorf("collection %q: no such key: %w", m.entries().name, ErrNotFound)
	}
	return v, err
}

// valueOf calls ORMap.Get, which may run the codec of a user-defined type.
func valueOf[K any, V crdt.Value[V]](all crdt.ORMap[K, V], key K) (v V, ok bool, err error) {
	err = guarded(func() error { v, ok = all.Get(key); return nil })
	return v, ok, err
}

// Update changes the value at key, which is empty at first, and returns it after the change. See
// Key.Update, which also lists what modify must not do. If the codec of a user-defined type cannot
// decode what it has encoded, Update returns that error although the change is made.
func (m ShardedMap[K, V]) Update(ctx context.Context, r *Replicator, key K,
	modify func(w *crdt.Writer, v *V) error, at Consistency) (v V, err error) {
	shard, err := m.entries().shard(m.encode(key))
	if err != nil {
		return v, err
	}
	all, err := shard.Update(ctx, r, updating(key, modify), at)
	v, _, unread := valueOf(all, key)
	return v, cmp.Or(err, unread)
}

func updating[K any, V crdt.Value[V]](key K,
	modify func(w *crdt.Writer, v *V) error) func(*crdt.Writer, *crdt.ORMap[K, V]) error {
	return func(w *crdt.Writer, all *crdt.ORMap[K, V]) (err error) {
		all.Update(w, key, func(v *V) { err = modify(w, v) })
		return err
	}
}

// Remove removes what this replica has seen of the value at key. Removing a missing key succeeds.
func (m ShardedMap[K, V]) Remove(ctx context.Context, r *Replicator, key K, at Consistency) error {
	shard, err := m.entries().shard(m.encode(key))
	if err != nil {
		return err
	}
	_, err = shard.Update(ctx, r, removing[K, V](key), at)
	return err
}

func removing[K any, V crdt.Value[V]](key K) func(*crdt.Writer, *crdt.ORMap[K, V]) error {
	return func(w *crdt.Writer, all *crdt.ORMap[K, V]) error { all.Remove(w, key); return nil }
}

// UpdateIn changes the value at key inside a transaction.
func (m ShardedMap[K, V]) UpdateIn(tx *Tx, key K, change func(v *V)) {
	if all := m.entries().in(tx, m.encode(key)); all != nil {
		all.Update(tx.Writer, key, change)
	}
}

// RemoveIn removes keys inside a transaction.
func (m ShardedMap[K, V]) RemoveIn(tx *Tx, keys ...K) {
	for _, key := range keys {
		if all := m.entries().in(tx, m.encode(key)); all != nil {
			all.Remove(tx.Writer, key)
		}
	}
}

// GetIn returns a copy of the value at key inside a transaction, including the transaction's
// changes so far, and whether the key is present.
func (m ShardedMap[K, V]) GetIn(tx *Tx, key K) (v V, ok bool) {
	if all := m.entries().in(tx, m.encode(key)); all != nil {
		return all.Get(key)
	}
	return v, false
}

// Clear removes everything that this replica has seen of the map in this program's layout, one
// shard after the other. It is not atomic: an element that is added meanwhile may stay. Clear
// returns when as many replicas as the level requires have applied it. To clean up after a program
// with another number of shards, call Clear in that program.
func (m ShardedMap[K, V]) Clear(ctx context.Context, r *Replicator, at Consistency) error {
	return m.entries().clear(ctx, r, at)
}

// MapSnapshot is the content of a ShardedMap in a Snapshot: all shards at one instant. It may be
// kept, and is safe for concurrent use.
type MapSnapshot[K any, V crdt.Value[V]] struct {
	m   ShardedMap[K, V]
	now Snapshot
}

// Of reads the map in a snapshot. The result contains each update of this member that returned
// before the snapshot was taken. It shows every update, including one of several elements, as a
// whole or not at all. For a result that contains what a majority had seen, call Get at Majority
// with any key before taking the snapshot.
//
// Errors: ErrClosed, ErrLoading, ErrInvalid, ErrType. An empty map is not an error.
func (m ShardedMap[K, V]) Of(now Snapshot) (MapSnapshot[K, V], error) {
	return MapSnapshot[K, V]{m, now}, m.entries().usable(now)
}

// Get returns a copy of the value at key, and whether the key is present.
func (s MapSnapshot[K, V]) Get(key K) (v V, ok bool) {
	if all, ok := s.m.entries().at(s.now, s.m.encode(key)); ok {
		return all.Get(key)
	}
	return v, false
}

// Len returns the number of keys that All yields. It sums the counts kept by the shards, which
// takes one to five microseconds per shard, regardless of the number of keys.
func (s MapSnapshot[K, V]) Len() (n int) {
	for all := range s.m.entries().of(s.now) {
		n += all.Len()
	}
	return n
}

// All yields the keys with copies of their values, one shard after the other, in an unspecified
// order that is the same each time. Later changes do not show. All skips shards and values of
// another type and those that cannot be decoded.
func (s MapSnapshot[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for all := range s.m.entries().of(s.now) {
			for k, v := range all.All() {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}
