// Package history is what a replica knows: its state, the vector of the events that the state
// stands for, the log of what these events did, and its own events that are not committed yet. It
// also knows which of its own events another replica has. It knows no member, no message and no
// level, and it decides nothing: the core says what to apply.
//
//	Update, Direct ─▶ open events ─▶ Commit ─┐
//	Apply (a delta), Join (a state), Replace ─┴▶ state, vector and log, in one step ─▶ Change
//	Since, Events, State ─▶ what other replicas are sent
//
// Values are immutable: a State that was taken stays as it is. A transition that does not return
// changes nothing. The rules (R1 …) are those of docs/replication.md.
//
// # Why the state is that of the vector
//
// A push follows its base and leaves no hole, so the vector stays a causal cut, and the state is
// that of the vector by definition [R7]. A closed delta answers a vector that is covered here: what
// it removes is covered there, or travels with it. An event that is covered here and had removed an
// added atom had observed it, so that the vector, a causal cut, covers the atom's dot. An atom of
// the union is therefore here, or new and in the delta [R16]. A join is the same, with "absent and
// covered" in place of the removal [R19].
package history
