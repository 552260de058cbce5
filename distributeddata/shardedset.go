package distributeddata

import (
	"context"
	"iter"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/hosted"
)

// ShardedSet is one set spread over a number of entries by a hash of the elements. Everything not
// described here works as in ShardedMap. An add wins over a concurrent remove, as in crdt.ORSet.
//
//	var Seen = distributeddata.NewShardedSet("seen", 1024, crdt.ORSet[string]{})
//
//	err := Seen.Add(ctx, dd, "4711", distributeddata.Local)
//	ok, err := Seen.Contains(ctx, dd, "4711") // local, never waits
type ShardedSet[E any] struct {
	made   sharded[crdt.ORSet[E]]
	append func(dst []byte, e E) ([]byte, error)
}

// NewShardedSet returns the set with the given name, with the bounds of NewShardedMap.
func NewShardedSet[E any](name string, shards int, empty crdt.ORSet[E]) ShardedSet[E] {
	return ShardedSet[E]{sharded[crdt.ORSet[E]]{newLayout(name, hosted.TypeName(empty), shards),
		&empty}, hosted.Encoder[E](&empty)}
}

func (s ShardedSet[E]) entries() sharded[crdt.ORSet[E]] { return s.made.orInvalid() }

func (s ShardedSet[E]) encode(e E) func([]byte) ([]byte, error) {
	return func(dst []byte) ([]byte, error) { return s.append(dst, e) }
}

// Contains reports whether e is in the set. Levels and errors are those of Key.Get, but a missing
// entry is not an error.
func (s ShardedSet[E]) Contains(ctx context.Context, r *Replicator, e E,
	at ...Consistency) (bool, error) {
	all, err := s.entries().get(ctx, r, s.encode(e), at)
	return err == nil && all.Contains(e), err
}

// Add adds an element to the set.
func (s ShardedSet[E]) Add(ctx context.Context, r *Replicator, e E, at Consistency) error {
	shard, err := s.entries().shard(s.encode(e))
	if err != nil {
		return err
	}
	_, err = shard.Update(ctx, r, adding(e), at)
	return err
}

func adding[E any](e E) func(*crdt.Writer, *crdt.ORSet[E]) error {
	return func(w *crdt.Writer, all *crdt.ORSet[E]) error { all.Add(w, e); return nil }
}

// Remove removes an element. Removing a missing element succeeds.
func (s ShardedSet[E]) Remove(ctx context.Context, r *Replicator, e E, at Consistency) error {
	shard, err := s.entries().shard(s.encode(e))
	if err != nil {
		return err
	}
	_, err = shard.Update(ctx, r, dropping(e), at)
	return err
}

func dropping[E any](e E) func(*crdt.Writer, *crdt.ORSet[E]) error {
	return func(w *crdt.Writer, all *crdt.ORSet[E]) error { all.Remove(w, e); return nil }
}

// AddIn adds elements to the set inside a transaction.
func (s ShardedSet[E]) AddIn(tx *Tx, elems ...E) {
	for _, e := range elems {
		if all := s.entries().in(tx, s.encode(e)); all != nil {
			all.Add(tx.Writer, e)
		}
	}
}

// RemoveIn removes elements inside a transaction.
func (s ShardedSet[E]) RemoveIn(tx *Tx, elems ...E) {
	for _, e := range elems {
		if all := s.entries().in(tx, s.encode(e)); all != nil {
			all.Remove(tx.Writer, e)
		}
	}
}

// ContainsIn reports whether e is in the set inside a transaction, including the transaction's
// changes so far.
func (s ShardedSet[E]) ContainsIn(tx *Tx, e E) bool {
	all := s.entries().in(tx, s.encode(e))
	return all != nil && all.Contains(e)
}

// Clear removes every element, as ShardedMap.Clear does.
func (s ShardedSet[E]) Clear(ctx context.Context, r *Replicator, at Consistency) error {
	return s.entries().clear(ctx, r, at)
}

// SetSnapshot is the content of a ShardedSet in a Snapshot. See MapSnapshot.
type SetSnapshot[E any] struct {
	s   ShardedSet[E]
	now Snapshot
}

// Of reads the set in a snapshot, as ShardedMap.Of does.
func (s ShardedSet[E]) Of(now Snapshot) (SetSnapshot[E], error) {
	return SetSnapshot[E]{s, now}, s.entries().usable(now)
}

// Contains reports whether e is in the set.
func (s SetSnapshot[E]) Contains(e E) bool {
	all, ok := s.s.entries().at(s.now, s.s.encode(e))
	return ok && all.Contains(e)
}

// Len returns the number of elements that All yields. It costs as much as MapSnapshot.Len.
func (s SetSnapshot[E]) Len() (n int) {
	for all := range s.s.entries().of(s.now) {
		n += all.Len()
	}
	return n
}

// All yields the elements, in an unspecified order that is the same each time.
func (s SetSnapshot[E]) All() iter.Seq[E] {
	return func(yield func(E) bool) {
		for all := range s.s.entries().of(s.now) {
			for e := range all.All() {
				if !yield(e) {
					return
				}
			}
		}
	}
}
