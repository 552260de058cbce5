package distributeddata

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/concord-go/concord/crdt"
)

// ShardedMap is one map that is spread over a number of entries, its shards, by a hash of the keys: for a million elements
// and more, where a single entry would reach the bounds of a value, and a member that is far behind would be sent all
// of it. An update costs what one of a shard costs. Keys and values are those of crdt.ORMap; a key is present while its
// value holds anything.
//
//	var Users = distributeddata.NewShardedMap("users", 1024, crdt.ORMap[string, crdt.LWWRegister[string]]{})
//
//	_, err := Users.Update(ctx, dd, "ada", func(w *crdt.Writer, name *crdt.LWWRegister[string]) error {
//		name.Set(w, "Ada Lovelace")
//		return nil
//	})
//	name, err := Users.Get(ctx, dd, "ada") // local, never waits
//
// Levels, errors and what an update in progress means are those of Key. Several elements change together in Atomically,
// with UpdateIn and RemoveIn.
//
// The number of shards is fixed: it is a part of the names of the shards, as are the types of keys and values. While this
// replica holds entries of the same collection that were written with another number, every operation but Clear returns
// ErrInvalid, and with another type ErrType, naming both; nothing of the two is mixed up. Two programs that differ and
// write at the same time notice it when they have heard of each other.
//
// Maps are cheap values; declare them as package variables. Config.Durable has a collection durable by "users#*".
type ShardedMap[K any, V crdt.Value[V]] struct {
	entries sharded[crdt.ORMap[K, V]]
}

// NewShardedMap returns the map name: UTF-8, from 1 to 256 bytes, without # and *. shards is from 1 to MaxShards; about
// one for 10,000 elements that are expected at the most is a good number, and an entry costs little while it is empty. With
// any other every operation returns ErrInvalid. empty supplies the codecs, as in NewKey.
func NewShardedMap[K any, V crdt.Value[V]](name string, shards int, empty crdt.ORMap[K, V]) ShardedMap[K, V] {
	return ShardedMap[K, V]{sharded[crdt.ORMap[K, V]]{newLayout(name, crdt.TypeName(empty), shards), empty}}
}

// String returns the name.
func (m ShardedMap[K, V]) String() string { return m.entries.name }

func (m ShardedMap[K, V]) encode(key K) func([]byte) ([]byte, error) {
	return func(dst []byte) ([]byte, error) { return m.entries.empty.AppendKey(dst, key) }
}

// Get returns the value at key; ErrNotFound if there is none. Key.Get says what a level means; here it is the whole map
// that this replica has then seen.
func (m ShardedMap[K, V]) Get(ctx context.Context, r *Replicator, key K, opts ...Option) (v V, err error) {
	all, err := m.entries.get(ctx, r, m.encode(key), opts)
	if err != nil {
		return v, err
	}
	v, ok, err := valueOf(all, key)
	if err == nil && !ok {
		err = fmt.Errorf("collection %q: no such key: %w", m, ErrNotFound)
	}
	return v, err
}

// valueOf is ORMap.Get. It runs the codec of an own type.
func valueOf[K any, V crdt.Value[V]](all crdt.ORMap[K, V], key K) (v V, ok bool, err error) {
	err = guarded(func() error { v, ok = all.Get(key); return nil })
	return v, ok, err
}

// Update changes the value at key, which begins empty, and returns it after the change. See Key.Update, which also says
// what modify must not do. Where the codec of an own type cannot decode what it has encoded, its error says so, and the
// change is made.
func (m ShardedMap[K, V]) Update(ctx context.Context, r *Replicator, key K, modify func(w *crdt.Writer, v *V) error, opts ...Option) (v V, err error) {
	shard, err := m.entries.shard(m.encode(key))
	if err != nil {
		return v, err
	}
	all, err := shard.Update(ctx, r, updating(key, modify), opts...)
	v, _, unread := valueOf(all, key)
	return v, cmp.Or(err, unread)
}

// UpdateMessage returns Update as a message; what the response brings is the shard. A key that cannot be encoded refuses
// the update.
func (m ShardedMap[K, V]) UpdateMessage(key K, modify func(w *crdt.Writer, v *V) error, opts ...Option) *Update[crdt.ORMap[K, V]] {
	return m.entries.message(m.encode(key), updating(key, modify), opts)
}

func updating[K any, V crdt.Value[V]](key K, modify func(w *crdt.Writer, v *V) error) func(*crdt.Writer, *crdt.ORMap[K, V]) error {
	return func(w *crdt.Writer, all *crdt.ORMap[K, V]) (err error) {
		all.Update(w, key, func(v *V) { err = modify(w, v) })
		return err
	}
}

// Remove takes a key out: what this replica has seen of its value. Removing what is not there succeeds.
func (m ShardedMap[K, V]) Remove(ctx context.Context, r *Replicator, key K, opts ...Option) error {
	shard, err := m.entries.shard(m.encode(key))
	if err != nil {
		return err
	}
	_, err = shard.Update(ctx, r, removing[K, V](key), opts...)
	return err
}

// RemoveMessage returns Remove as a message; what the response brings is the shard.
func (m ShardedMap[K, V]) RemoveMessage(key K, opts ...Option) *Update[crdt.ORMap[K, V]] {
	return m.entries.message(m.encode(key), removing[K, V](key), opts)
}

func removing[K any, V crdt.Value[V]](key K) func(*crdt.Writer, *crdt.ORMap[K, V]) error {
	return func(w *crdt.Writer, all *crdt.ORMap[K, V]) error { all.Remove(w, key); return nil }
}

// UpdateIn changes the value at key inside a transaction.
func (m ShardedMap[K, V]) UpdateIn(tx *Tx, key K, change func(v *V)) {
	if all := m.entries.in(tx, m.encode(key)); all != nil {
		all.Update(tx.Writer, key, change)
	}
}

// RemoveIn takes keys out inside a transaction.
func (m ShardedMap[K, V]) RemoveIn(tx *Tx, keys ...K) {
	for _, key := range keys {
		if all := m.entries.in(tx, m.encode(key)); all != nil {
			all.Remove(tx.Writer, key)
		}
	}
}

// GetIn returns a copy of the value at key inside a transaction, as that has left it so far, and whether there is one.
func (m ShardedMap[K, V]) GetIn(tx *Tx, key K) (v V, ok bool) {
	if all := m.entries.in(tx, m.encode(key)); all != nil {
		return all.Get(key)
	}
	return v, false
}

// Clear takes out all that this replica has seen of the map as this program lays it out, shard after shard: it is not
// atomic, and an element that is put there meanwhile may stay. It returns when so many replicas have heard of it as
// the level says. It is what clears up after a program with another number of shards: call it there.
func (m ShardedMap[K, V]) Clear(ctx context.Context, r *Replicator, opts ...Option) error {
	return m.entries.clear(ctx, r, opts)
}

// MapSnapshot is what a ShardedMap held in a Snapshot: of one instant, in all shards. It may be kept, and read from many
// goroutines.
type MapSnapshot[K any, V crdt.Value[V]] struct {
	m   ShardedMap[K, V]
	now Snapshot
}

// Of reads the map in a snapshot, which shows each update of this member that returned before the snapshot was taken, and
// each update whole or not at all, also one of several elements. For one that shows what a majority had seen, call Get at
// Majority with any key before the snapshot is taken.
//
// Errors: ErrClosed, ErrLoading, ErrInvalid, ErrType. A map without keys is no error.
func (m ShardedMap[K, V]) Of(now Snapshot) (MapSnapshot[K, V], error) {
	return MapSnapshot[K, V]{m, now}, m.entries.usable(now)
}

// Get returns a copy of the value at key, and whether there is one.
func (s MapSnapshot[K, V]) Get(key K) (v V, ok bool) {
	if all, ok := s.m.entries.at(s.now, s.m.encode(key)); ok {
		return all.Get(key)
	}
	return v, false
}

// Contains reports whether the key is present.
func (s MapSnapshot[K, V]) Contains(key K) bool {
	all, ok := s.m.entries.at(s.now, s.m.encode(key))
	return ok && all.Contains(key)
}

// Len returns the number of keys: exactly those that All yields. It adds up the numbers that the shards keep, so it costs
// one to five microseconds for each shard, however many keys there are.
func (s MapSnapshot[K, V]) Len() (n int) {
	for all := range s.m.entries.of(s.now) {
		n += all.Len()
	}
	return n
}

// All yields the keys with copies of their values: shard after shard, in an order that means nothing and is the same each
// time. What changes meanwhile does not show. Shards and values of another type, and those that cannot be decoded, are
// passed over.
func (s MapSnapshot[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for all := range s.m.entries.of(s.now) {
			for k, v := range all.All() {
				if !yield(k, v) {
					return
				}
			}
		}
	}
}
