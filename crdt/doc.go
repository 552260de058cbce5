// Package crdt has values that any number of replicas change at once, without asking each other, and
// that merge to the same value everywhere: counters, sets, registers and maps.
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
// Most programs use these types as the values of keys in package distributeddata, which supplies the
// writers and spreads the changes. Then merging, encoding and deltas below are its business.
//
// # Which type
//
//	GCounter        counts up; every increment counts
//	PNCounter       counts up and down
//	BoundedCounter  counts up and down, never below zero
//	GSet            elements only come
//	ORSet           elements come and go; a concurrent add wins over a remove
//	RWSet           elements come and go; a concurrent remove wins over an add
//	EWFlag, DWFlag  on or off; of concurrent switches on wins, or off
//	LWWRegister     one element; the last write wins, or the first; others are lost
//	MVRegister      one element, or all that were written concurrently
//	MaxRegister     the largest element ever written; MinRegister the smallest
//	LWWMap          elements under keys, each set as a whole; the last write wins
//	PNCounterMap    counters under keys
//	ORMultiMap      sets of elements under keys
//	ORMap           values of this package under keys; removing a key resets its value
//	Record          a struct of values of this package, without a line of code
//	VersionVector   which of two versions was made from the other
//
// Another own type needs the three methods of [Value], which mostly call those of its parts; package
// testkit/crdttest checks that it keeps the laws.
//
// What concurrent changes to each type amount to is shown row by row in docs/crdts.md.
//
// What changed between two values of a type with elements is what Diff returns; of counters, flags and
// registers with one element compare the values.
//
// # How values work
//
// A value is a small struct over an immutable tree. Copying it takes a snapshot, which any number of
// goroutines may read. Mutators have pointer receivers and rebind only the variable they are called
// on. The zero value is empty and ready.
//
// A mutator needs a [Writer], the right to make one change, which names it: the replica and the number
// of the change. What a value has seen is a vector of such numbers. An atom, one live fact such as an
// element in a set, that is absent on one side of a merge was removed there if that side has seen its
// change, and is new to it if not. So nothing is kept of what was removed.
//
// A mutator that cannot do its work says so in the writer, and later mutators with that writer do
// nothing: check [Writer.Err] once, at the end. [Update] and the replicator do it for you.
//
// # Duties of the caller
//
//  1. A replica id is never used twice, not even after a restart: two changes of one name make
//     replicas differ for ever. Take a random one at each start.
//  2. A replica changes the latest state it made, never an older copy of it.
//  3. One writer is for one change: take another after a merge, or when the value was sent.
//  4. Element types have one encoding for each value; see [Codec].
//
// # Deltas
//
// A state grows with the value, what changed does not. [Update] returns it as a [Delta], which [Apply]
// brings to others:
//
//	delta, err := crdt.Update(alice, &a, func(w *crdt.Writer, v *crdt.ORSet[string]) error {
//		v.Add(w, "tea")
//		return nil
//	})
//	err = crdt.Apply(&b, delta)
//
// Deltas may be lost, doubled and reordered: one that comes too early is refused with [ErrGap] and can
// be applied again later, or a merge of whole states makes up for it. A delta seen before does nothing.
// A [Log] of the last deltas tells which of them a replica lacks.
//
// # Guarantees
//
//   - Merge is commutative, associative and idempotent, and an empty value changes nothing.
//   - Replicas that have seen the same changes have equal values and equal bytes.
//   - The value follows from the changes seen and from which of them knew of which, by the rule that
//     each type states. It does not depend on the way or the order in which they came.
//   - Decoding any bytes returns a value or an error; it does not panic, and the memory it takes is
//     bounded by their length.
//
// Not guaranteed: that two replicas that have seen different changes agree on anything, or that an
// invariant over several values, or a bound on one, holds. For that a replica has to ask others.
//
// # Literature
//
// Shapiro et al., "Conflict-free Replicated Data Types" (2011); Bieniusa et al., "An Optimized
// Conflict-free Replicated Set" (2012); Almeida, Shoker, Baquero, "Delta State Replicated Data Types"
// (2018). Unlike most libraries a map shares the causal context with its values, and counters inside
// it are reset exactly: increments that a remove had not seen, and no others, survive it.
package crdt
