package crdt

import (
	"fmt"
	"sync/atomic"

	"github.com/concord-go/concord/internal/causal"
)

// ReplicaID identifies one incarnation of one replica. A restarted program is a new replica: an id
// must never be used again, or two different changes would have the same name. Zero is not a valid
// id.
type ReplicaID uint64

func (id ReplicaID) String() string { return causal.Replica(id).String() }

// Writer is the right to change values within one update. It supplies the dot and the time of the
// change and records the first error, which makes the whole update fail. All changes made with one
// writer are one event. A writer is valid only within the function it is passed to; a mutator
// called with it later panics, like a write to a nil map. A Writer is not safe for concurrent use.
type Writer struct {
	dot    causal.Dot
	stamp  uint64
	hosted bool // the values belong to a replicator, which tracks what has been seen
	done   bool
	err    error
	lines  uint32 // number of values handed out by the maps that w changes
	trail  *trail // of an Update without a replicator; otherwise nil
}

// Err returns the first error of a mutator called with w, or nil.
func (w *Writer) Err() error { return w.err }

// Fail makes the update fail with err, unless an earlier error is recorded. It is for mutators of
// user-defined types.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Replica returns the replica that makes the change.
func (w *Writer) Replica() ReplicaID { return ReplicaID(w.dot.Replica) }

// ok reports whether a mutator may continue. It returns false after an error, and panics outside
// the update.
func (w *Writer) ok() bool {
	if w == nil || w.done {
		panic("crdt: mutator called outside its update")
	}
	return w.err == nil
}

// Replica supplies writers to a program that uses values without a replicator. Each value must have
// one line of descent at a replica: change the same variable again, not an older copy of it.
// Replica is safe for concurrent use; the values are not.
type Replica struct {
	id     ReplicaID
	events atomic.Uint64
	wall   func() uint64
	clock  causal.Clock
}

// NewReplica returns the replica with the given id, which must not be zero and must never have been
// used before. Registers are ordered by the number of the change: a later write of one replica wins
// over its earlier ones, and concurrent writes of different replicas are ordered by these numbers
// and then by id. See [NewReplicaWithClock] for wall time.
func NewReplica(id ReplicaID) *Replica { return NewReplicaWithClock(id, nil) }

// NewReplicaWithClock is like NewReplica, with hybrid logical time for registers. clock returns the
// wall time in milliseconds since 1970.
func NewReplicaWithClock(id ReplicaID, clock func() uint64) *Replica {
	if id == 0 {
		panic("crdt: replica id 0")
	}
	return &Replica{id: id, wall: clock}
}

// ID returns the id of the replica.
func (r *Replica) ID() ReplicaID { return r.id }

// Writer returns the right to make the next change.
func (r *Replica) Writer() *Writer {
	w := r.writer()
	return &w
}

func (r *Replica) writer() Writer {
	n := r.events.Add(1)
	stamp := n
	if r.wall != nil {
		stamp = r.clock.Next(r.wall())
	}
	return Writer{dot: causal.Dot{Replica: causal.Replica(r.id), N: n}, stamp: stamp}
}

func (r *Replica) String() string { return fmt.Sprintf("replica %v", r.id) }
