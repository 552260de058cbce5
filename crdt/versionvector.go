package crdt

import (
	"fmt"
	"iter"
	"log/slog"
	"math"

	"github.com/concord-go/concord/internal/causal"
)

// VersionVector holds, for each replica, the number of its known events: n means the events 1 to n.
// It determines whether one version was derived from another or the two are concurrent, for
// programs that track versions themselves. The other types of this package contain such a vector,
// see [Seen]. The zero value knows no events and is before all others. A VersionVector is immutable
// and safe for concurrent reads.
//
// It costs 16 bytes for each replica. Entries are never removed.
type VersionVector struct{ v causal.Vector }

// Order is the relation between two version vectors.
type Order int

// Before and After mean that one vector knows all that the other knows, and more. Concurrent means
// that each knows something the other does not.
const (
	Equal Order = iota
	Before
	After
	Concurrent
)

func (o Order) String() string {
	switch o {
	case Equal:
		return "equal"
	case Before:
		return "before"
	case After:
		return "after"
	case Concurrent:
		return "concurrent"
	}
	return fmt.Sprintf("order %d", int(o))
}

// Get returns the number of the last known event of r.
func (v VersionVector) Get(r ReplicaID) uint64 { return v.v.Get(causal.Replica(r)) }

// Next returns the vector that also knows the next event of r: the version that r derives from v.
func (v VersionVector) Next(r ReplicaID) VersionVector {
	n := v.Get(r)
	if n == math.MaxUint64 {
		return v
	}
	return v.With(r, n+1)
}

// With returns the vector that also knows the events of r up to n. Replica 0 is not a valid id;
// With returns v for it.
func (v VersionVector) With(r ReplicaID, n uint64) VersionVector {
	if r == 0 {
		return v
	}
	return VersionVector{v.v.With(causal.Dot{Replica: causal.Replica(r), N: n})}
}

// Covers reports whether v knows all that o knows.
func (v VersionVector) Covers(o VersionVector) bool { return o.v.Leq(v.v) }

// Compare returns the order of v relative to o.
func (v VersionVector) Compare(o VersionVector) Order {
	switch below, above := v.v.Leq(o.v), o.v.Leq(v.v); {
	case below && above:
		return Equal
	case below:
		return Before
	case above:
		return After
	}
	return Concurrent
}

// Len returns the number of replicas with a known event.
func (v VersionVector) Len() int { return v.v.Len() }

// All yields the replicas, ascending, with the number of the last known event of each.
func (v VersionVector) All() iter.Seq2[ReplicaID, uint64] {
	return func(yield func(ReplicaID, uint64) bool) {
		for d := range v.v.All() {
			if !yield(ReplicaID(d.Replica), d.N) {
				return
			}
		}
	}
}

// Merge returns the vector that knows the events of both.
func (v VersionVector) Merge(o VersionVector) VersionVector { return VersionVector{v.v.Join(o.v)} }

// AppendBinary appends the canonical encoding: equal vectors have equal bytes.
func (v VersionVector) AppendBinary(dst []byte) ([]byte, error) {
	return causal.AppendState(dst, causal.Store{}, v.v)
}

// Decode returns the vector encoded by AppendBinary.
func (v VersionVector) Decode(src []byte) (VersionVector, error) {
	s, seen, err := causal.ParseState(src)
	switch {
	case err != nil:
		return v, err
	case !s.Blank():
		return v, fmt.Errorf("%w: a value, wanted a version vector", ErrType)
	}
	return VersionVector{seen}, nil
}

// String lists the replicas in order.
func (v VersionVector) String() string { return v.v.String() }

// LogValue returns the type and the size.
func (v VersionVector) LogValue() slog.Value {
	return slog.GroupValue(slog.String("type", "VersionVector"), slog.Int("size", v.Len()))
}

// MarshalJSON returns an object from replicas to numbers, in order.
func (v VersionVector) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for r, n := range v.All() {
		out = fmt.Appendf(separated(out), "%q:%d", r, n)
	}
	return append(out, '}'), nil
}

// Seen returns the version vector of a value: how many changes of each replica it has seen. For a
// value used alone, these are the changes that were merged into it. For a value that a replicator
// has handed out, they are all changes that the replicator had seen then, to any entry.
// User-defined types have no such vector; Seen returns an empty one.
//
// The encoding of a value used alone contains the whole vector. The encoding of a value from a
// replicator contains only the entries of replicas whose changes are still part of the value, so
// that its size does not depend on how many replicas ever existed. The value decoded from it is a
// snapshot: Seen returns less for it, and if it is merged with an older snapshot, an element that
// was removed in between can reappear, namely if nothing else remains of the replica that added
// the element. Replicators merge their states, not snapshots.
func Seen[T Value[T]](v T) VersionVector {
	h, ok := heldBy(&v)
	if !ok {
		return VersionVector{}
	}
	at, _ := gathered(h)
	return VersionVector{at.seen}
}
