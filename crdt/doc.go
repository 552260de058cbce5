// Package crdt implements values that any number of replicas change concurrently without
// coordination and that merge to the same value everywhere: counters, sets, registers and maps.
//
//	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
//
//	var a, b crdt.ORSet[string]
//	a.Add(alice.Writer(), "milk", "bread")
//	b = b.Merge(a)                      // bob gets alice's list
//	b.Remove(bob.Writer(), "milk")      // and takes the milk,
//	a.Add(alice.Writer(), "milk")       // while alice notes it once more
//
//	a, b = a.Merge(b), b.Merge(a)
//	fmt.Println(a, b)                   // {bread milk} {bread milk}: the remove had not seen that add
//
// Most programs use these types as the values of keys in package distributeddata, which supplies
// the writers, distributes the changes, and takes care of merging, encoding and deltas.
//
// # Which type
//
//	GCounter        counts up; every increment counts
//	PNCounter       counts up and down
//	BoundedCounter  counts up and down, never below zero
//	GSet            elements only come
//	ORSet           elements come and go; a concurrent add wins over a remove
//	RWSet           elements come and go; a concurrent remove wins over an add
//	EWFlag, DWFlag  on or off; among concurrent switches on (or off) wins
//	LWWRegister     one element; the last write wins, or the first; others are lost
//	MVRegister      one element, or all that were written concurrently
//	MaxRegister     the largest element ever written; MinRegister the smallest
//	LWWMap          elements under keys, each set as a whole; the last write wins
//	PNCounterMap    counters under keys
//	ORMultiMap      sets of elements under keys
//	ORMap           values of this package under keys; removing a key resets its value
//	Record          a struct of values of this package, without a line of code
//
// A user-defined type needs the three methods of [Value], which mostly call those of its parts.
// Package testkit/crdttest checks that the type obeys the laws.
//
// docs/crdts.md shows, row by row, the results of concurrent changes to each type.
//
// For types with elements, Diff returns what changed between two values. For counters, flags and
// registers with one element, compare the values.
//
// # How values work
//
// A value is a small struct over an immutable tree. Copying it takes a snapshot, which any number
// of goroutines may read. Mutators have pointer receivers and rebind only the variable they are
// called on. The zero value is empty and ready.
//
// A mutator needs a [Writer], the right to make one change, which is identified by the replica and
// the number of the change. A value records the changes it has seen as a vector of such numbers. An
// atom is one live fact, such as an element in a set. If an atom is absent on one side of a merge,
// that side has either seen the atom's change, in which case it removed the atom, or has not seen
// it, in which case the atom is new. Removed elements therefore leave nothing behind.
//
// A mutator that fails records the error in the writer, and later mutators with that writer do
// nothing: check [Writer.Err] once, at the end. [Update] and the replicator do so for you.
//
// # Duties of the caller
//
//  1. Never use a replica id twice, not even after a restart: two changes with one name make
//     replicas differ forever. Choose a random id at each start.
//  2. A replica changes the latest state it made, never an older copy of it.
//  3. One writer is for one change: get another after a merge, or after sending the value.
//  4. Element types have one encoding for each value; see [Codec].
//
// # Deltas
//
// The size of a state grows with the value, that of a change does not. [Update] returns the change
// as a [Delta], and [Apply] applies it to other replicas:
//
//	delta, err := crdt.Update(alice, &a, func(w *crdt.Writer, v *crdt.ORSet[string]) error {
//		v.Add(w, "tea")
//		return nil
//	})
//	err = crdt.Apply(&b, delta)
//
// Deltas may be lost, duplicated and reordered. Apply returns [ErrGap] for a delta that arrives too
// early; apply it again later, or merge whole states instead. A delta seen before has no effect.
//
// # Guarantees
//
//   - Merge is commutative, associative and idempotent, and merging an empty value changes nothing.
//   - Replicas that have seen the same changes have equal values and equal bytes.
//   - The value is a function of the changes seen and of the causal order between them, by the rule
//     that each type states. It does not depend on the path or the order in which they arrived.
//   - Decoding any bytes returns a value or an error. It does not panic, and its memory use is
//     bounded by their length.
//
// Not guaranteed: that two replicas that have seen different changes agree on anything, or that an
// invariant over several values, or a bound on one, holds. Those need coordination between
// replicas.
//
// # Literature
//
// Shapiro et al., "Conflict-free Replicated Data Types" (2011); Bieniusa et al., "An Optimized
// Conflict-free Replicated Set" (2012); Almeida, Shoker, Baquero, "Delta State Replicated Data
// Types" (2018). Unlike in most libraries, a map shares its causal context with its values, and
// counters inside a map are reset exactly: only the increments that a remove had not seen survive
// it.
//
// Program examples/customcrdt adds a type.
package crdt
