// Package crdttest checks that a type can be replicated. It drives three replicas of a value
// through random histories of changes, merges, deltas that are lost, duplicated and reordered, and
// values that were encoded or loaded by a replicator, and checks the laws below. It is for
// user-defined types, whether made of the types of package crdt or implementing the methods of
// [crdt.Value] themselves. Package crdt tests its own types with it.
//
//	func TestTwoPhase(t *testing.T) {
//		crdttest.Run(t, crdttest.Type[twoPhase]{
//			Change: func(d *crdttest.Draw, w *crdt.Writer, s *twoPhase) []crdttest.Effect {
//				e := d.Letter("element")
//				if d.Bool("remove") {
//					s.Remove(w, e)
//					return crdttest.Put("removed/"+e, "")
//				}
//				s.Add(w, e)
//				return crdttest.Put("added/"+e, "")
//			},
//		})
//	}
//
// # Laws
//
//	 1  merge is commutative                    a⊔b = b⊔a
//	 2  merge is associative                    (a⊔b)⊔c = a⊔(b⊔c)
//	 3  merge is idempotent                     a⊔a = a
//	 4  the empty value is the identity         a⊔⊥ = a
//	 5  a change only adds information          before⊔after = after
//	 6  a delta is equivalent to the state      before with the delta = after
//	 7  a delta takes effect once               even duplicated, late, and after the state
//	 8  a delta after a gap is rejected         and leaves the value unchanged
//	11  replicas converge                       the changes seen decide, not their order
//	12  the value equals the specification      if there is one; see [Spec]
//	13  a reset removes what it has seen        before or after a merge, permanently
//	15  the encoding is exact                   decode∘encode = id, and no bytes make Decode panic
//	16  the size is bounded                     by the contents of the value, not by its history
//	17  values are immutable                    no operand of a merge or change is written
//	18  other types and versions are rejected   with an error that says so, and no change
//	19  stamps of registers only grow           whatever the clock does, and never pass its latest
//
// There are no laws 9, 10 and 14.
//
// Equal means equal bytes. A broken law fails the test with its number, the values, and the
// shortest history found. Laws 6 to 8 and 13 concern deltas, which user-defined types have only
// inside a map. Each type is tested alone, in an [crdt.ORMap], and in an ORMap whose key is removed
// concurrently with changes to it.
//
// The number of histories is that of package rapid: -rapid.checks, 100 by default. -rapid.seed
// repeats a run.
//
// Package examples/customcrdt checks two types of its own.
package crdttest
