package crdt

import (
	"fmt"
	"iter"
	"log/slog"
	"math"

	"github.com/concord-go/concord/internal/causal"
)

// VersionVector says for each replica how many of its events are known: n means the events 1 to n. It
// tells whether one version of something was made from another or both at the same time, for programs
// that keep versions themselves; the other types of this package have theirs inside, see [Seen]. The
// zero value knows nothing and is before all others. It is immutable and may be read from many
// goroutines.
//
// It costs 16 bytes for each replica. Nothing is ever dropped from it.
type VersionVector struct{ v causal.Vector }

// Order says how two version vectors stand to each other.
type Order int

// The orders. Before and After: one knows all that the other knows, and more. Concurrent: each knows
// something that the other does not.
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

// Next returns the vector that also knows the next event of r: the version that r makes from v.
func (v VersionVector) Next(r ReplicaID) VersionVector {
	n := v.Get(r)
	if n == math.MaxUint64 {
		return v
	}
	return v.With(r, n+1)
}

// With returns the vector that also knows the events of r up to n. Replica 0 is nobody and has none.
func (v VersionVector) With(r ReplicaID, n uint64) VersionVector {
	if r == 0 {
		return v
	}
	return VersionVector{v.v.With(causal.Dot{Replica: causal.Replica(r), N: n})}
}

// Covers reports whether v knows all that o knows.
func (v VersionVector) Covers(o VersionVector) bool { return o.v.Leq(v.v) }

// Compare says how v stands to o.
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

// Len returns the number of replicas of which an event is known.
func (v VersionVector) Len() int { return v.v.Len() }

// All yields the replicas, ascending, with the numbers of their last known events.
func (v VersionVector) All() iter.Seq2[ReplicaID, uint64] {
	return func(yield func(ReplicaID, uint64) bool) {
		for d := range v.v.All() {
			if !yield(ReplicaID(d.Replica), d.N) {
				return
			}
		}
	}
}

// Merge returns the vector that knows what either knows.
func (v VersionVector) Merge(o VersionVector) VersionVector { return VersionVector{v.v.Join(o.v)} }

// AppendBinary appends the canonical encoding: equal vectors have equal bytes.
func (v VersionVector) AppendBinary(dst []byte) ([]byte, error) {
	return causal.AppendState(dst, causal.Store{}, v.v)
}

// Decode returns the vector that AppendBinary wrote.
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

// LogValue returns type and size.
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

// Seen returns what a value used alone has seen of the changes of each replica. A value that lies in a
// replicator has seen what the replicator has; of that its encoding keeps what concerns the replicas that
// the value names, so that its size does not depend on how many ever ran. Own types have no such vector.
//
// So what is decoded is a snapshot. Merged with an older one, an element that was removed in between comes
// back if nothing else of the replica that had added it is left. Replicators merge their states, not snapshots.
func Seen[T Value[T]](v T) VersionVector {
	h, ok := heldBy(&v)
	if !ok {
		return VersionVector{}
	}
	at, _ := gathered(h)
	return VersionVector{at.seen}
}
