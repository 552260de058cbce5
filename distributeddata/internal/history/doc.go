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
package history
