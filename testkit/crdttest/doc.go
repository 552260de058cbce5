// Package crdttest checks that a type can be replicated: it drives three replicas of a value through
// random histories of changes, merges, and deltas that are lost, doubled and out of order, and holds
// them to the laws below. It is for own types, made of the types of package crdt or by the three
// methods of [crdt.Value], and it is what package crdt tests its own types with.
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
//	 1  merge is commutative                     a⊔b = b⊔a
//	 2  merge is associative                     (a⊔b)⊔c = a⊔(b⊔c)
//	 3  merge is idempotent                      a⊔a = a
//	 4  the empty value is the identity          a⊔⊥ = a
//	 5  a change only adds information           before⊔after = after
//	 6  a delta is worth the state               before with the delta = after
//	 7  a delta counts once                      also doubled, late, and after the state
//	 8  a delta with a gap before it is refused  and leaves the value as it was
//	 9  what a log says is missing is enough     t with it = t⊔s, removals included; see [crdt.Log]
//	10  and none of it was there
//	11  replicas converge                        what was seen decides, not its order
//	12  the value is what the specification says if there is one; see [Spec]
//	13  a reset takes away what it has seen      before a merge or after it, and it does not come back
//	15  the encoding is exact                    decode∘encode = id, and no bytes make Decode panic
//	16  the size is bounded                      by what is in the value, not by its past
//	17  values are immutable                     no operand of a merge or change is written
//	18  what is of another type or version       is refused with an error that says so, and changes nothing
//	19  stamps of registers only grow            whatever the wall clock does, and never pass its latest
//
// There is no law 14, of pruning: nothing is ever forgotten of a replica, so nothing can go wrong with it.
//
// Equal means equal bytes. A broken law fails the test with its number, the values, and the shortest
// history found. Laws 6 to 10 and 13 are about deltas, which own types have when they lie in a map. Each
// type is tested alone, in an [crdt.ORMap], and in one whose key is removed while it is changed elsewhere.
//
// The number of histories is that of package rapid: -rapid.checks, 100 by default; -rapid.seed repeats
// a run.
package crdttest
